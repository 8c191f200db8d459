/** Whether Docker sees what is mounted here. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { CallError } from '../core/errors.ts';
import { type MountTable, parseMountTable, readMountTable } from './mount-table.ts';

/** Where processes are looked up and mounts are read; the tests have others. */
export interface ProcessView {
  readonly proc: string;
  readonly readTable: () => Promise<Pick<MountTable, 'at'>>;
}

const thisMachine: ProcessView = { proc: '/proc', readTable: readMountTable };

/**
 * Throws FAILED_PRECONDITION when what is mounted at `path` is seen by no dockerd. A container would then get the empty folder below it, and what it
 * writes there would be lost.
 *
 * It happens to a service with mounts of its own (PrivateMounts=yes), and to a managed plugin whose propagated mount dockerd has unmounted: it does
 * that when a plugin is enabled while it still clears up after an earlier attempt. A process that sees no dockerd, such as within a container without
 * the host's processes, cannot tell and does not throw.
 */
export async function requireSeenByDocker(path: string, view: ProcessView = thisMachine): Promise<void> {
  const mount = (await view.readTable()).at(path);
  if (!mount) return;
  const own = await namespaceOf(view, 'self');
  let looked = false;
  for (const pid of await dockerProcesses(view)) {
    const text = await readFile(`${view.proc}/${pid}/mountinfo`, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    looked = true;
    if (own !== undefined && (await namespaceOf(view, pid)) === own) return;
    const isSeen = parseMountTable(text).mounts.some(
      (one) => one.device === mount.device && one.root === mount.root && tailOf(one.mountPoint) === tailOf(path),
    );
    if (isSeen) return;
  }
  if (!looked) return;
  throw new CallError(
    'FAILED_PRECONDITION',
    `Docker does not see what is mounted at ${path}: disable the plugin, wait a moment, and enable it again; a service of its own must not have ` +
      'private mounts (systemd: PrivateMounts=no)',
  );
}

async function dockerProcesses({ proc }: ProcessView): Promise<readonly string[]> {
  const pids = (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name));
  const names = await Promise.all(pids.map((pid) => readFile(`${proc}/${pid}/comm`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => names[index] === 'dockerd\n');
}

async function namespaceOf({ proc }: ProcessView, pid: string): Promise<string | undefined> {
  return readlink(`${proc}/${pid}/ns/mnt`).catch(() => undefined);
}

/** Docker has the folder of a managed plugin at another path. */
function tailOf(path: string): string {
  return path.split('/').slice(-2).join('/');
}
