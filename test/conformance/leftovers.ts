/** What a stopped plugin must not leave behind. */

import { execFile } from 'node:child_process';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Mount points at or below a folder, deepest last mounted first. */
export async function mountsBelow(folder: string): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  return table
    .split('\n')
    .map((line) => unescaped(line.split(' ')[4] ?? ''))
    .filter((path) => path === folder || path.startsWith(`${folder}/`))
    .reverse();
}

/** The kernel writes spaces and the like as three octal digits. */
const unescaped = (path: string) =>
  path.replace(/\\([0-7]{3})/g, (_all, digits) => String.fromCharCode(Number.parseInt(digits, 8)));

/** Files and folders below a folder that do not fit any of these patterns, by their path from there. */
export async function filesBelow(folder: string, expected: readonly RegExp[]): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => !expected.some((pattern) => pattern.test(path)));
}

/** Unmounts whatever a failed run has left below a folder, and removes it. */
export async function removeFolder(folder: string): Promise<void> {
  for (const mount of await mountsBelow(folder)) await execute('umount', ['--lazy', mount]).catch(() => {});
  if ((await mountsBelow(folder)).length > 0) throw new Error(`${folder} has mounts that cannot be ended`);
  await rm(folder, { recursive: true, force: true });
}
