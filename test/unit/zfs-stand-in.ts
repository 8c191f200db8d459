/** A storage host that is not there: its shell reads the scripts that drivers send, and runs nothing but a `zfs` of ours. */
import * as v from 'valibot';
import type { Shell, ShellScript } from '../../src/backends/shell/shell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { zfsGenericNfs } from '../../src/drivers/zfs/rows.ts';

export interface Said {
  readonly code?: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

/** What a program says. `argv`: with its name, without its folder. */
export type Programs = (argv: readonly string[]) => Said;

export interface StandInHost {
  readonly shell: Shell;
  /** Scripts that were run: round trips. */
  scripts(): number;
  /** Programs that were run, except for those that only tell the version. */
  commands(): readonly (readonly string[])[];
}

export function standInHost(programs: Programs): StandInHost {
  let scripts = 0;
  const commands: (readonly string[])[] = [];
  const run = (argv: readonly string[]): Said => {
    const [program = '', ...args] = argv;
    if (args[0] === 'version') return { stdout: 'zfs-2.3.9-1\n' };
    const own = [program.slice(program.lastIndexOf('/') + 1), ...args];
    if (own[0] !== '[') commands.push(own);
    return programs(own);
  };
  const shell: Shell = {
    host: 'stand-in',
    async run(_call, { text }: ShellScript) {
      scripts++;
      const output = { stdout: '', stderr: '' };
      let failed = false;
      for (const step of readSteps(text)) {
        if (failed !== (step.group === 'o')) continue;
        const { code = 0, stdout = '', stderr = '' } = runStep(step, run);
        output.stdout += `${stdout}\n${step.mark} ${code}\n`;
        output.stderr += `${stderr}\n${step.mark} ${code}\n`;
        if (step.goOn !== undefined && !step.goOn.includes(code)) {
          if (failed || !text.includes('the_attempt')) break;
          failed = true;
        }
      }
      return { ...output, code: 0, signal: null, truncated: false };
    },
    async close() {},
  };
  return { shell, scripts: () => scripts, commands: () => commands };
}

interface ReadStep {
  readonly argv: readonly string[];
  readonly body: string | undefined;
  readonly mark: string;
  readonly group: string;
  readonly goOn: readonly number[] | undefined;
}

function readSteps(text: string): readonly ReadStep[] {
  const form =
    /# \d+\n(?:the_step\(\) \{\n([\s\S]*?)\n\}\nthe_step)?([\s\S]*?) ?<\/dev\/null\nc=\$\?\nprintf '[^']*' (\w{24}([go]?)) .*\n.*\n(?:case \$c in ([\d|]+)\))?/g;
  return [...text.matchAll(form)].map(([, body, command = '', mark = '', group = '', codes]) => {
    return { argv: words(command), body, mark, group, goOn: codes?.split('|').map(Number) };
  });
}

function runStep({ argv, body }: ReadStep, run: (argv: readonly string[]) => Said): Said {
  if (body === undefined) return run(argv);
  const looked = /^\[ (! )?-d "\$1(.*)" \]$/.exec(body);
  if (looked) {
    const { code = 0 } = run(['[', '-d', `${argv[0]}${looked[2]}`]);
    return { code: (code === 0) === (looked[1] === undefined) ? 0 : 1 };
  }
  if (!body.startsWith('wanted=')) return {};
  const [wanted, ...looking] = argv;
  return run(looking).stdout?.trimEnd() === wanted ? {} : { code: 1 };
}

/** As `quote` writes them. */
function words(command: string): readonly string[] {
  const found = command.trim().matchAll(/(?:'[^']*'|\\'|[^\s'\\])+/g);
  return [...found].map(([word]) => word.replace(/'([^']*)'|\\'/g, (_whole, inner?: string) => inner ?? "'"));
}

await zfsGenericNfs.prepare?.({} as never);

/** zfs-generic-nfs with its volumes in tank/v and its detached snapshots in tank/s. */
export function standInDriver({ shell }: StandInHost, zfs: Readonly<Record<string, unknown>> = {}): Driver {
  const options = {
    driver: 'zfs-generic-nfs',
    zfs: { datasetParentName: 'tank/v', detachedSnapshotsDatasetParentName: 'tank/s', ...zfs },
    sshConnection: { host: 'stand-in' },
    nfs: {
      shareHost: 'nas',
      shareStrategySetDatasetProperties: { properties: { sharenfs: 'rw' } },
    },
  };
  return zfsGenericNfs.create(parsed(options), {
    csiName: 'test',
    nodeName: 'node',
    nodeId: 'node',
    nodeTopology: {},
    maxIdBytes: 128,
    run: () => Promise.reject(new Error('nothing is run here')),
    ssh: { open: () => shell },
    log: silentLogger,
  });
}

function parsed(options: unknown) {
  return v.parse(zfsGenericNfs.schema, options);
}
