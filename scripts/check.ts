/** `npm run check`: everything about the sources that a tool can tell. One line a step; what a failed step said comes after its line. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { wrongImports } from './check/rooms.ts';
import { longFiles } from './check/sizes.ts';
import { foundTraces } from './check/traces.ts';
import { generate } from './generate.ts';
import { repository } from './lib/repository.ts';

interface Step {
  readonly title: string;
  /** Resolves with what is wrong; an empty text means nothing is. */
  readonly findings: Promise<string>;
}

async function check(): Promise<boolean> {
  await generate();
  const sizes = longFiles();
  const steps: Step[] = [
    { title: 'types (tsc)', findings: tool('tsc', '-p', '.') },
    { title: 'types of the codec (tsc)', findings: codecTypes() },
    {
      title: 'lint, format, import cycles (biome)',
      findings: tool('biome', 'check', '--error-on-warnings', '--diagnostic-level=warn'),
    },
    { title: 'rooms import only rooms behind them', findings: wrongImports().then(lines) },
    { title: 'unused files, exports, dependencies (knip)', findings: tool('knip', '--no-progress') },
    { title: 'no traces of a machine or a registry', findings: foundTraces().then(lines) },
    { title: 'files of one idea (at most 350 lines)', findings: sizes.then(({ tooLong }) => lines(tooLong)) },
  ];
  let good = true;
  for (const { title, findings } of steps) {
    const text = await findings;
    console.log(`${text === '' ? '✓' : '✗'} ${title}`);
    if (text !== '') console.log(text.replace(/^(?=.)/gm, '    '));
    good &&= text === '';
  }
  for (const line of (await sizes).long) console.log(`! worth splitting: ${line}`);
  return good;
}

const lines = (findings: readonly string[]) => findings.join('\n');

/** The sources are checked without a look into declaration files, these included. */
function codecTypes(): Promise<string> {
  const files = ['csi', 'services', 'secrets'].map((name) => `src/generated/${name}.d.ts`);
  const options =
    '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --types node --target es2023 --module nodenext';
  return tool('tsc', ...options.split(' '), ...files);
}

/** What a tool of node_modules printed if it failed. */
function tool(name: string, ...args: string[]): Promise<string> {
  const program = join(repository, 'node_modules/.bin', name);
  return new Promise((resolve) => {
    execFile(program, args, { cwd: repository, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      const said = `${stdout}${stderr}`.trimEnd();
      resolve(error ? said || error.message : '');
    });
  });
}

process.exitCode = (await check()) ? 0 : 1;
