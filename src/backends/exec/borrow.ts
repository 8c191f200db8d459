/** Starting a program of the host without leaving this process's own root: the host's dynamic loader brings it and its libraries. */
import { realpath } from 'node:fs/promises';
import { basename, join } from 'node:path/posix';
import { errnoOf } from '../../core/errors.ts';
import { type Elf, readElf } from './elf.ts';
import { findLibraries } from './find-libraries.ts';
import type { FoundProgram } from './find-program.ts';
import type { Start } from './host-strategy.ts';
import { resolveInRoot } from './root-path.ts';

/** How to start it, or why it cannot be started that way. */
export type Borrowed = { readonly start: Start } | { readonly why: string };

/** `root`: where the host's files are seen. The loader is told where the libraries are by an argument, which no child inherits. */
export async function borrow(root: string, program: FoundProgram): Promise<Borrowed> {
  const elf = await readElf(join(root, program.file)).catch((error: unknown) => errnoOf(error) ?? 'EIO');
  if (typeof elf === 'string') return { why: `${join(root, program.file)} cannot be read (${elf})` };
  if (!elf) return { why: `${join(root, program.path)} is a script, which needs the host's root` };
  const name = basename(program.path);
  const env = await settingsOf(root, name);
  if (elf.interpreter === undefined) return { start: { argv: [join(root, program.file)], argv0: name, env } };
  return borrowDynamic(root, program, elf, elf.interpreter, env);
}

/** What the host wants new file systems to be like; mke2fs(8) would look for it in this root. */
async function settingsOf(root: string, name: string): Promise<Start['env']> {
  if (!/^(mke2fs|mkfs\.ext\d)$/.test(name)) return undefined;
  const file = await resolveInRoot(root, '/etc/mke2fs.conf');
  return file === undefined ? undefined : { MKE2FS_CONFIG: join(root, file) };
}

async function borrowDynamic(
  root: string,
  program: FoundProgram,
  elf: Elf,
  interpreter: string,
  env: Start['env'],
): Promise<Borrowed> {
  const loader = await resolveInRoot(root, interpreter);
  if (loader === undefined) return { why: `its dynamic loader ${join(root, interpreter)} is missing` };
  const { directories, missing } = await findLibraries(root, program.file, elf, interpreter);
  if (missing.length > 0) return { why: `its libraries ${missing.join(', ')} were not found in ${root}` };
  const path = directories.map((directory) => join(root, directory)).join(':');
  const renamed = await renaming(root, program);
  return { start: { argv: [join(root, loader), '--library-path', path, ...renamed], env } };
}

/** A program of many names learns from its own path which one it is, so it gets the path by that name where the kernel can follow it. */
async function renaming(root: string, { path, file }: FoundProgram): Promise<readonly string[]> {
  const real = join(root, file);
  if (basename(path) === basename(file)) return [real];
  const seen = await realpath(join(root, path)).catch(() => undefined);
  const leadsThere = seen !== undefined && seen === (await realpath(real).catch(() => real));
  return leadsThere ? [join(root, path)] : ['--argv0', basename(path), real];
}
