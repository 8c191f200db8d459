/** The ZFS of one host: its commands in few round trips, and what it can do, found out once. */
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { quote } from '../shell/quote.ts';
import type { Shell } from '../shell/shell.ts';
import {
  type Attempt,
  attemptSteps,
  runSteps,
  type StepResult,
  type StepResults,
  type Steps,
  type StepsOptions,
} from '../shell/steps.ts';
import { type Dataset, type DatasetType, parseJson, parseText } from './dataset.ts';
import { isMissing, StepFailed, saysOnlyMissing } from './failure.ts';

export interface ZfsPrograms {
  /** A program, and what it takes before its own arguments. */
  readonly zfs: readonly string[];
  readonly zpool: readonly string[];
  readonly sudo: string;
  /** Everything is run with sudo. */
  readonly sudoEnabled: boolean;
  /** Nothing is run while one of these pools is suspended, or not imported. Default: none. */
  readonly pools?: readonly string[] | undefined;
}

export interface ZfsHost {
  /** For messages. */
  readonly host: string;
  /** A command of zfs(8). */
  zfs(...args: readonly string[]): readonly string[];
  /** A command of zpool(8). */
  zpool(...args: readonly string[]): readonly string[];
  /** Another program of the host, with sudo when ZFS has it. */
  program(...argv: readonly string[]): readonly string[];
  /**
   * Runs steps in one round trip; see {@link runSteps}. UNAVAILABLE when a pool is suspended: commands would then hang in the kernel, where nothing
   * ends them, and each attempt would leave one more. The same when one is not imported: ZFS says of everything in it that it does not exist.
   */
  run(call: CallContext, title: string, steps: Steps, options?: Partial<StepsOptions>): Promise<StepResults>;
  /** The same, with other steps for when these do not come to a good end; see {@link attemptSteps}. */
  attempt(call: CallContext, title: string, steps: Steps, otherwise: Steps): Promise<Attempt>;
  /** A step that reads datasets, for {@link ZfsHost.run}, and what reads its result. */
  reading(call: CallContext, wanted: Reading): Promise<ReadingStep>;
  /** Reads datasets: one round trip. Throws NOT_FOUND when the named one is not there. */
  read(call: CallContext, wanted: Reading): Promise<readonly Dataset[]>;
  /** The same of one dataset alone. Undefined when it is not there. */
  readOne(call: CallContext, name: string, properties: readonly string[]): Promise<Dataset | undefined>;
  /** The same host, where other programs than those of ZFS are run with sudo, or without; undefined: as those of ZFS are. */
  withSudo(enabled: boolean | undefined): ZfsHost;
  close(): Promise<void>;
}

export interface Reading {
  readonly name: string;
  /** It is one of several, which are read in the same way, and of which those are left out that are not there. */
  readonly others?: readonly string[] | undefined;
  readonly properties: readonly string[];
  /** Default: the named one itself. */
  readonly depth?: number | 'all' | undefined;
  /** Default: any. */
  readonly types?: readonly DatasetType[] | undefined;
}

export interface ReadingStep {
  readonly argv: readonly string[];
  /** Throws {@link StepFailed} when it failed. */
  datasets(result: StepResult): readonly Dataset[];
}

/** Milliseconds that commands may take which only look or change one dataset. */
const usualMs = 120_000;

/**
 * What the kernel of Linux says, without touching the pools: `zpool` itself might hang. Elsewhere there are no such files; where they are, they are
 * not all that is asked before something is said to be missing. Arguments: pools.
 */
const isRunning = (zpool: readonly string[]) => `for pool; do
  state=; { read -r state <"/proc/spl/kstat/zfs/$pool/state"; } 2>/dev/null
  [ "$state" != SUSPENDED ] || { echo "the pool $pool is suspended: see zpool status $pool, and zpool clear"; return 1; }
  [ -d "/proc/spl/kstat/zfs/$pool" ] || [ ! -d /proc/spl/kstat/zfs ] || ${zpool.map(quote).join(' ')} list -H -o name "$pool" >/dev/null ||
    { echo "the pool $pool is not imported: see zpool import"; return 1; }
done`;

export function createZfsHost(shell: Shell, programs: ZfsPrograms): ZfsHost {
  const { host } = shell;
  const sudo = programs.sudoEnabled ? [programs.sudo, '-n'] : [];
  const zfs = (...args: readonly string[]) => [...sudo, ...programs.zfs, ...args];
  const zpool = [...sudo, ...programs.zpool];
  const { pools = [] } = programs;
  const guard = {
    step: { argv: pools, body: isRunning(zpool) },
    refused: ({ stdout }: StepResult) => new CallError('UNAVAILABLE', `${host}: ${stdout.trim()}`),
  };
  const usual = { timeoutMs: usualMs, ...(pools.length > 0 && { guard }) };
  const run: ZfsHost['run'] = (call, title, steps, options) =>
    runSteps(call, shell, steps, { ...usual, title, ...options });

  let json: Promise<boolean> | undefined;
  /** `-j` came with OpenZFS 2.3. */
  function hasJson(call: CallContext): Promise<boolean> {
    json ??= run(call, 'zfs version', [{ argv: zfs('version') }]).then(([result]) => isAtLeast(result, 2, 3));
    json.catch(() => {
      json = undefined;
    });
    return json;
  }

  async function reading(call: CallContext, { name, others, properties, depth, types }: Reading): Promise<ReadingStep> {
    const asked = [...new Set(['type', ...properties])];
    // Where one of several is missing, JSON is not printed at all.
    const isJson = others === undefined && (await hasJson(call));
    const scope = [
      ...(depth === undefined ? [] : depth === 'all' ? ['-r'] : ['-d', String(depth)]),
      ...(types ? ['-t', types.join(',')] : []),
    ];
    const argv = isJson
      ? zfs('get', '-j', '-p', ...scope, asked.join(','), name, ...(others ?? []))
      : zfs('get', '-Hp', '-o', 'name,property,value,source', ...scope, asked.join(','), name, ...(others ?? []));
    return {
      argv,
      datasets(result) {
        const isPart = others !== undefined && saysOnlyMissing(result);
        if (result.code !== 0 && !isPart) throw new StepFailed(host, `zfs get … ${name}`, result);
        if (!isJson) return parseText(result.stdout, asked);
        try {
          return parseJson(result.stdout);
        } catch (error) {
          // Where the locale is missing, or a value is no UTF-8. As text it can be read.
          json = Promise.resolve(false);
          throw error;
        }
      },
    };
  }

  const self: ZfsHost = {
    host,
    zfs,
    zpool: (...args) => [...zpool, ...args],
    program: (...argv) => [...sudo, ...argv],
    run,
    attempt: (call, title, steps, otherwise) => attemptSteps(call, shell, steps, otherwise, { ...usual, title }),
    reading,
    async read(call, wanted) {
      const step = await reading(call, wanted);
      const [result] = await run(call, 'zfs get', [step]);
      return step.datasets(result);
    },
    async readOne(call, name, properties) {
      const step = await reading(call, { name, properties });
      const [result] = await run(call, 'zfs get', [step]);
      return isMissing(result) ? undefined : step.datasets(result).find((dataset) => dataset.name === name);
    },
    withSudo: (enabled = programs.sudoEnabled) => ({
      ...self,
      program: (...argv) => (enabled ? [programs.sudo, '-n', ...argv] : argv),
    }),
    close: () => shell.close(),
  };
  return self;
}

/** `zfs-2.3.9-1` and `zfs-kmod-2.3.9-1`: program and kernel module may differ, and the program is what prints. Old ones have no `version`. */
function isAtLeast({ code, stdout, stderr }: StepResult, major: number, minor: number): boolean {
  if (code === 126 || code === 127) throw new CallError('FAILED_PRECONDITION', `zfs cannot be run: ${stderr.trim()}`);
  const found = /^zfs-(\d+)\.(\d+)/m.exec(stdout);
  if (!found) return false;
  const [has, andHas] = [Number(found[1]), Number(found[2])];
  return has > major || (has === major && andHas >= minor);
}
