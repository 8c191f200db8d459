/** Subsystems by nvmetcli(8): it reads commands, and saves when it is told to. */
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import { listSubsystems, lookAtSubsystem } from './nvmet-look.ts';
import { oneAtATime, type TargetStrategy } from './target.ts';
import { requireLine } from './targetcli.ts';

export interface NvmetOptions {
  readonly nvmetcliPath: string;
  /** A file that is there once the host's own configuration has been loaded: before, saving would lose it. */
  readonly configIsImportedFilePath?: string | undefined;
  readonly configPath?: string | undefined;
  readonly ports: readonly string[];
  readonly subsystem?: { readonly attributes?: Readonly<Record<string, string>> | undefined } | undefined;
}

export function nvmetcliStrategy(zfs: ZfsHost, options: NvmetOptions): TargetStrategy {
  const { nvmetcliPath, configPath, ports, subsystem } = options;
  const save = ['cd /', configPath ? `saveconfig savefile=${configPath}` : 'saveconfig'];
  const run = (lines: readonly string[]) => ({
    argv: whenImported(zfs, options, oneAtATime(zfs, nvmetcliPath)),
    input: [...lines, ...save, 'exit'].map((line) => `${requireLine(line)}\n`).join(''),
  });
  return {
    create: ({ qualifiedName: nqn, device }) => [
      run([
        'cd /subsystems',
        `create ${nqn}`,
        `cd /subsystems/${nqn}`,
        ...Object.entries(subsystem?.attributes ?? {}).map(([key, value]) => `set attr ${key}=${value}`),
        `cd /subsystems/${nqn}/namespaces`,
        'create 1',
        `cd /subsystems/${nqn}/namespaces/1`,
        `set device path=${device}`,
        'enable',
        ...ports.flatMap((port) => [`cd /ports/${port}/subsystems`, `create ${nqn}`]),
      ]),
    ],
    remove: ({ qualifiedName: nqn }) => [
      run([
        ...ports.flatMap((port) => [`cd /ports/${port}/subsystems`, `delete ${nqn}`]),
        'cd /subsystems',
        `delete ${nqn}`,
      ]),
    ],
    look: (target) => lookAtSubsystem(zfs, target, ports),
    list: listSubsystems(zfs),
  };
}

function whenImported(
  zfs: ZfsHost,
  { configIsImportedFilePath: file }: NvmetOptions,
  argv: readonly string[],
): readonly string[] {
  if (!file) return argv;
  const script =
    'f=$1; shift; [ -e "$f" ] || { echo "$f is not there: the host has not loaded its own configuration yet" >&2; exit 1; }; exec "$@"';
  return zfs.program('sh', '-c', script, 'sh', file, ...argv);
}
