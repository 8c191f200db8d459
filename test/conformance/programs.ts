/** The forms in which the program is delivered, up to date with the sources. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Say } from '../../scripts/executable/tools.ts';
import { buildExecutable } from '../../scripts/executable.ts';
import { buildBundle, bundlePath } from '../../scripts/lib/build-bundle.ts';
import { denoPath } from '../../scripts/lib/deno-path.ts';
import { repository } from '../../scripts/lib/repository.ts';

export type ProgramName = 'executable' | 'bundle on Node' | 'bundle on Deno';

/** The beginning of the command line that runs it. */
export type Program = readonly string[];

/** Builds what is missing or older than its sources. The executable is undefined where none can be built; why was said. */
export async function buildPrograms(say: Say): Promise<Readonly<Record<ProgramName, Program | undefined>>> {
  await buildBundle();
  const executable = await freshExecutable(say);
  return {
    executable: executable === undefined ? undefined : [executable],
    'bundle on Node': [process.execPath, bundlePath],
    'bundle on Deno': [denoPath(), 'run', '-A', bundlePath],
  };
}

async function freshExecutable(say: Say): Promise<string | undefined> {
  const arch = process.arch;
  if (process.platform !== 'linux' || (arch !== 'x64' && arch !== 'arm64')) return undefined;
  const path = join(repository, `dist/switchboard-linux-${arch}`);
  const [bundle, built] = await Promise.all([stat(bundlePath), stat(path).catch(() => undefined)]);
  // The bundle's time is that of its last change.
  if (built !== undefined && built.mtimeMs >= bundle.mtimeMs) return path;
  return buildExecutable({ arch, say });
}
