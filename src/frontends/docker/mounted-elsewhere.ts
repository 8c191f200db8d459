/** Whether containers have a volume mounted, as far as this process can see the others' mounts. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { isWithin, type Mount, parseMountTable } from '../../node/mount-table.ts';
import type { Places } from './mount-records.ts';

/** More than these need not be named. */
const enough = 5;

/**
 * Processes that see the volume at another place than its own, one for each mount namespace, as "process 123 (sleep)". A process that cannot be
 * looked into is passed over, and so is everybody outside a container of one's own.
 */
export async function mountedElsewhere(mount: Mount, places: Places): Promise<readonly string[]> {
  const own = [tailOf(places.target), tailOf(places.staging)];
  const seen = new Set<string>();
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (found.length >= enough) break;
    if (!/^\d+$/.test(pid)) continue;
    const namespace = await readlink(`/proc/${pid}/ns/mnt`).catch(() => undefined);
    if (namespace === undefined || seen.has(namespace)) continue;
    seen.add(namespace);
    const { mounts } = parseMountTable(await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => ''));
    const isUser = mounts.some((one) => shows(one, mount) && !own.includes(tailOf(one.mountPoint)));
    if (isUser) found.push(await describe(pid));
  }
  return found;
}

/** Other namespaces may have the volume's own place as a copy, below another root. */
function tailOf(path: string): string {
  return path.split('/').slice(-3).join('/');
}

function shows(one: Mount, mount: Mount): boolean {
  return one.device === mount.device && isWithin(one.root, mount.root);
}

async function describe(pid: string): Promise<string> {
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
  return `process ${pid}${name ? ` (${name.trim()})` : ''}`;
}
