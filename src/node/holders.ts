import { readdir, readFile, readlink } from 'node:fs/promises';
import { isWithin } from './mount-table.ts';

/** More than these need not be named. */
const enough = 5;

/** Processes with a working directory, root or open file below `path`, as "process 123 (bash)". Only the links in /proc are read, never the files. */
export async function findHolders(path: string): Promise<readonly string[]> {
  const holders: string[] = [];
  for (const pid of await readdir('/proc').catch(() => [])) {
    if (holders.length >= enough) break;
    if (/^\d+$/.test(pid) && (await holds(pid, path))) holders.push(await describe(pid));
  }
  return holders;
}

async function holds(pid: string, path: string): Promise<boolean> {
  const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
  for (const link of ['cwd', 'root', 'exe', ...files.map((fd) => `fd/${fd}`)]) {
    const target = await readlink(`/proc/${pid}/${link}`).catch(() => '');
    if (target.startsWith('/') && isWithin(target, path)) return true;
  }
  return false;
}

async function describe(pid: string): Promise<string> {
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
  return `process ${pid}${name ? ` (${name.trim()})` : ''}`;
}
