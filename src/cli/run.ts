/** argv → a command → an exit code. */
import { Command, CommanderError } from 'commander';
import { ConfigError, formatProblem } from '../config/problem.ts';
import { CallError } from '../core/errors.ts';
import { commit, version } from '../core/version.ts';
import { filesWorkerCommand } from '../drivers/directory/files-protocol.ts';
import { exitCodes } from './exit-codes.ts';
import type { Outcome } from './outcome.ts';
import type { Shell } from './shell.ts';
import { keepHeapSmall } from './small-heap.ts';
import { CommandError, UsageError } from './usage-error.ts';

interface CommandModule {
  readonly summary: string;
  /** Loaded only when it is asked for, so that `serve` starts without the rest. */
  readonly load: () => Promise<{ define: (command: Command, shell: Shell, outcome: Outcome) => void }>;
}

const commands: Readonly<Record<string, CommandModule>> = {
  serve: { summary: 'Answer storage calls (the default command)', load: () => import('./serve-command.ts') },
  check: { summary: 'Validate configuration and connection files', load: () => import('./check.ts') },
  probe: { summary: 'Ask a running plugin whether it is ready: the liveness probe', load: () => import('./probe.ts') },
  doctor: { summary: 'Tell what this host can do, and what is missing', load: () => import('./doctor.ts') },
  topology: { summary: 'Show what this node reports, and which rule made it', load: () => import('./topology.ts') },
  node: { summary: 'Remove what crashes and reboots left of volumes on this node', load: () => import('./node.ts') },
  drivers: { summary: 'List what a connection can be, with capabilities', load: () => import('./drivers.ts') },
  ctl: { summary: 'Create, mount, list … volumes of a running plugin by hand', load: () => import('./ctl/define.ts') },
};

const examples = `
Examples:
  switchboard                                       start with a folder of its own and one local connection
  switchboard --config switchboard.yaml --endpoint unix:///run/switchboard/csi.sock
  switchboard check switchboard.yaml connections/
  switchboard ctl create data --size 10Gi --connection nas

"switchboard <command> --help" tells more.`;

/** Runs one command line (without the program's own name) and resolves with the exit code. Throws only for defects. */
export async function run(argv: readonly string[], shell: Shell): Promise<number> {
  const outcome: Outcome = { code: exitCodes.done };
  try {
    return await dispatch(argv, shell, outcome);
  } catch (error) {
    const mayEnd = outcome.failed?.();
    const code = report(error, shell);
    await mayEnd;
    return code;
  }
}

async function dispatch(argv: readonly string[], shell: Shell, outcome: Outcome): Promise<number> {
  const [first] = argv;
  if (first === '--version' || first === '-V') {
    shell.out(`switchboard ${version} (${commit})\n`);
    return exitCodes.done;
  }
  if (first === '--help' || first === '-h' || (first === 'help' && argv.length === 1)) {
    shell.out(overview(shell));
    return exitCodes.done;
  }
  if (first === 'help') return dispatch([...argv.slice(1), '--help'], shell, outcome);
  if (first === filesWorkerCommand) return await workOnFiles();
  const isCommand = first !== undefined && !first.startsWith('-');
  const name = isCommand ? first : 'serve';
  const chosen = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (chosen === undefined) throw await unknownCommand(name);
  const { define } = await chosen.load();
  const command = new Command(`switchboard ${name}`).description(`${chosen.summary}.`);
  configure(command, shell);
  define(command, shell, outcome);
  adviseHelp(command, command.name());
  await command.parseAsync([...(isCommand ? argv.slice(1) : argv)], { from: 'user' });
  return outcome.code;
}

/** For no person: a server starts itself so, for shares that may hang. Loaded alone, since it stays in memory. */
async function workOnFiles(): Promise<number> {
  const { serveFiles } = await import('../drivers/directory/files-worker.ts');
  keepHeapSmall();
  await serveFiles(process.stdin, process.stdout);
  return exitCodes.done;
}

/** Output and errors of commander go the way of all others. Subcommands made afterwards inherit it. */
function configure(command: Command, shell: Shell): void {
  command
    .exitOverride()
    .configureOutput({
      writeOut: (text) => shell.out(text),
      writeErr: (text) => shell.err(text),
      getOutHelpWidth: () => shell.columns,
      getErrHelpWidth: () => shell.columns,
      getOutHasColors: () => shell.outIsTerminal,
      getErrHasColors: () => shell.errIsTerminal,
    })
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'show this text');
}

/** After a mistake: the name of the command whose help to read. */
function adviseHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Try "${name} --help".`);
  for (const sub of command.commands) adviseHelp(sub, `${name} ${sub.name()}`);
}

function overview(shell: Shell): string {
  const program = new Command('switchboard')
    .description('Storage for container orchestrators: each connection file is one place to keep volumes.')
    .usage('[command] [options]')
    .option('--version', 'print version and commit')
    .helpOption('-h, --help', 'show this text')
    .helpCommand(false)
    .addHelpText('after', examples);
  for (const [name, { summary }] of Object.entries(commands)) program.command(name).summary(summary);
  let text = '';
  program.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => shell.columns }).outputHelp();
  return text.replaceAll(/^( {2}\w+) \[options\]/gm, (all, name: string) => name.padEnd(all.length));
}

async function unknownCommand(name: string): Promise<UsageError> {
  const { closest, distance } = await import('fastest-levenshtein');
  const near = closest(name, Object.keys(commands));
  const hint = distance(name, near) <= 3 ? `Did you mean "switchboard ${near}"?` : 'Try "switchboard --help".';
  return new UsageError(`unknown command "${name}"`, hint);
}

function report(error: unknown, shell: Shell): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  if (isSystemError(error)) {
    // "ENOENT: no such file or directory, open '/x'" says it well enough.
    shell.err(`error: ${error.message}\n`);
    return exitCodes.failed;
  }
  if (error instanceof ConfigError) {
    for (const problem of error.problems) shell.err(`${formatProblem(problem)}\n`);
    return exitCodes.failed;
  }
  if (error instanceof CallError) {
    shell.err(`error: ${error.message}\n`);
    return exitCodes.failed;
  }
  if (!(error instanceof UsageError || error instanceof CommandError)) throw error;
  shell.err(`error: ${error.message}\n`);
  if (error.hint !== undefined) shell.err(`${error.hint}\n`);
  return error instanceof UsageError ? exitCodes.usage : exitCodes.failed;
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}
