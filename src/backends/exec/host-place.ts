/** Where the host's files are seen from this process, and how to get there. */
import { readlink, stat } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { oldestProcess } from './process-id.ts';
import { resolveInRoot } from './root-path.ts';

export interface HostPlace {
  /** The program that takes another program there. */
  readonly way: 'chroot' | 'nsenter';
  /** Its root directory as this process sees it. */
  readonly root: string;
  /** With nsenter: a process that is there. */
  readonly pid?: number | undefined;
}

/** The place, or why there is none. */
export type PlaceOrWhy = HostPlace | { readonly why: string };

/** A directory where the host's root is mounted. */
export async function rootDirectory(root: string): Promise<PlaceOrWhy> {
  if (!(await stat(root).catch(() => undefined))?.isDirectory()) return { why: `there is no directory ${root}` };
  const etc = await resolveInRoot(root, '/etc');
  const programs = await Promise.all(['/bin', '/usr/bin', '/nix/store'].map((path) => resolveInRoot(root, path)));
  if (etc !== undefined && programs.some((path) => path !== undefined)) return { way: 'chroot', root };
  return { why: `${root} is not the root directory of a host: it has no /etc or no /bin` };
}

/** The mount namespace of a process, given by its id or name. It may be this process's own. */
export async function processNamespace(process: number | string): Promise<PlaceOrWhy> {
  const pid = typeof process === 'number' ? process : await oldestProcess(process);
  if (pid === undefined) return { why: `there is no process ${process} (are the host's processes seen here?)` };
  const root = `/proc/${pid}/root`;
  if (await stat(join(root, '.')).catch(() => undefined)) return { way: 'nsenter', root, pid };
  return {
    why: `the root directory of process ${pid} cannot be looked at (that takes the host's processes and CAP_SYS_PTRACE)`,
  };
}

/** Where the host's files are, as it seems: its root directory, or else another process's namespace. Says what it passed over, and why. */
export async function hostPlace(
  root: string,
  process: number | string,
): Promise<{ readonly place: HostPlace | undefined; readonly passed: readonly string[] }> {
  const directory = await rootDirectory(root);
  if (!('why' in directory)) return { place: directory, passed: [] };
  const namespace = await processNamespace(process);
  if ('why' in namespace) return { place: undefined, passed: [directory.why, namespace.why] };
  if (await isElsewhere(namespace.pid)) return { place: namespace, passed: [directory.why] };
  const same = `process ${namespace.pid} is in this very mount namespace`;
  return { place: undefined, passed: [directory.why, same] };
}

async function isElsewhere(pid: number | undefined): Promise<boolean> {
  const [own, other] = await Promise.all(['self', pid].map((id) => readlink(`/proc/${id}/ns/mnt`).catch(() => '')));
  return other !== '' && own !== other;
}
