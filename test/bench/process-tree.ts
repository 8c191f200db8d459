/** What a process and its descendants cost, as the kernel counts it (proc(5)). */
import { readdir, readFile, readlink } from 'node:fs/promises';

/** The kernel shows CPU time in hundredths of a second on every architecture. */
const msPerTick = 10;

export interface Memory {
  readonly rssMiB: number;
  /** Pages shared with other processes count by the share. */
  readonly pssMiB: number;
}

/** The process and its descendants that are alive. */
export async function processTree(pid: number): Promise<number[]> {
  const children = await Promise.all((await threads(pid)).map((thread) => childrenOf(pid, thread)));
  const below = await Promise.all(children.flat().map(processTree));
  return [pid, ...below.flat()];
}

/**
 * User and system time in milliseconds, descendants that have ended included. It comes in steps of 10 ms, and nothing of it gets lost between
 * two readings: measure over seconds, or add up differences.
 */
export async function cpuMs(pid: number): Promise<number> {
  const each = await Promise.all((await processTree(pid)).map(ticksOf));
  return sum(each) * msPerTick;
}

/** The same in steps of nanoseconds, for a process whose threads all are still there; what descendants have used is in steps of 10 ms. */
export async function exactCpuMs(pid: number): Promise<number> {
  const each = await Promise.all((await processTree(pid)).map(exactCpuMsOf));
  return sum(each);
}

async function exactCpuMsOf(pid: number): Promise<number> {
  const own = (await threads(pid)).map(async (thread) => {
    const [onCpu = '0'] = (await readProc(`${pid}/task/${thread}/schedstat`)).split(' ');
    return Number(onCpu) / 1e6;
  });
  const [, , cutime = 0, cstime = 0] = await timesOf(pid);
  return sum(await Promise.all(own)) + (cutime + cstime) * msPerTick;
}

/** Resident memory, private and shared. */
export async function memoryOf(pid: number): Promise<Memory> {
  const texts = await Promise.all((await processTree(pid)).map((one) => readProc(`${one}/smaps_rollup`)));
  const total = (name: string) =>
    sum(texts.map((text) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0))) / 1024;
  return { rssMiB: total('Rss'), pssMiB: total('Pss') };
}

/** Open files, sockets and pipes. */
export async function openFilesOf(pid: number): Promise<number> {
  const each = await Promise.all((await processTree(pid)).map((one) => readdir(`/proc/${one}/fd`).catch(() => [])));
  return sum(each.map((names) => names.length));
}

/** The process that listens on a unix socket, if it is on this machine. */
export async function listenerOf(path: string): Promise<number | undefined> {
  const rows = (await readFile('/proc/net/unix', 'utf8')).split('\n').map((line) => line.split(/\s+/));
  const inodes = rows.filter((row) => row[7] === path && row[3] === '00010000').map((row) => `socket:[${row[6]}]`);
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const links = await Promise.all(files.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
    if (links.some((link) => inodes.includes(link))) return Number(pid);
  }
  return undefined;
}

/** A process may end between being seen and being read; it then counts for nothing. */
const readProc = (path: string) => readFile(`/proc/${path}`, 'utf8').catch(() => '');

const threads = (pid: number) => readdir(`/proc/${pid}/task`).catch(() => []);

async function childrenOf(pid: number, thread: string): Promise<number[]> {
  const text = await readProc(`${pid}/task/${thread}/children`);
  return text.split(' ').filter(Boolean).map(Number);
}

async function ticksOf(pid: number): Promise<number> {
  return sum(await timesOf(pid));
}

/** utime, stime, cutime and cstime. The program's name before them may hold spaces and parentheses. */
async function timesOf(pid: number): Promise<number[]> {
  const text = await readProc(`${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).map(Number);
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
