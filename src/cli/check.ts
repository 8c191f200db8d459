/** `switchboard check`: everything that is wrong with configuration files, before a server reads them. */
import type { Command } from 'commander';
import { formatProblem } from '../config/problem.ts';
import { type CheckedFile, checkPaths } from './check-files.ts';
import { exitCodes } from './exit-codes.ts';
import type { Outcome } from './outcome.ts';
import type { Shell } from './shell.ts';

const help = `
A folder stands for all its *.yaml files, as connections. A main file with "driver: proxy" brings its folder along.
Nothing is started and no storage is asked.

Exit code 0: the files can be used, perhaps with warnings. 1: there are errors.

Examples:
  switchboard check /etc/switchboard/switchboard.yaml
  switchboard check connections/ --print`;

interface CheckOptions {
  readonly json?: boolean;
  readonly print?: boolean;
}

export function define(check: Command, shell: Shell, outcome: Outcome): void {
  check
    .argument('<config...>', 'files and folders')
    .option('--json', 'print JSON')
    .option('--print', 'print the configuration too, variables expanded and secrets hidden')
    .addHelpText('after', help)
    .action(async (paths: readonly string[], options: CheckOptions) => {
      const files = await checkPaths(paths, shell.env);
      const errors = count(files, 'error');
      if (errors > 0) outcome.code = exitCodes.failed;
      shell.out(options.json ? json(files, errors, options) : await text(files, errors, options));
    });
}

function json(files: readonly CheckedFile[], errors: number, options: CheckOptions): string {
  const shown = files.map(({ config, ...file }) => (options.print ? { ...file, config } : file));
  return `${JSON.stringify({ ok: errors === 0, files: shown }, null, 2)}\n`;
}

async function text(files: readonly CheckedFile[], errors: number, options: CheckOptions): Promise<string> {
  const { stringify } = await import('yaml');
  const parts = files.map((file) => {
    const problems = file.problems.map((problem) => `${formatProblem(problem)}\n`).join('');
    const broken = file.problems.some((one) => one.severity === 'error');
    const good = broken || file.driver === undefined ? '' : `${file.file}: ok, ${about(file)}\n`;
    const printed =
      options.print && file.config !== undefined ? `${stringify(file.config).replace(/^(?=.)/gm, '  ')}` : '';
    return problems + good + printed;
  });
  const warnings = count(files, 'warning');
  return `${parts.join('')}${plural(files.length, 'file')}, ${plural(errors, 'error')}, ${plural(warnings, 'warning')}\n`;
}

function about({ driver, connection }: CheckedFile): string {
  return connection === undefined ? `driver ${driver}` : `connection ${connection}, driver ${driver}`;
}

function count(files: readonly CheckedFile[], severity: 'error' | 'warning'): number {
  return files.flatMap((file) => file.problems).filter((problem) => problem.severity === severity).length;
}

function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
