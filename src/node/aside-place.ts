/** Where a mount is made ready before it is shown at its place. It is there only for moments; after a crash the next call for the place removes it. */
import { createHash } from 'node:crypto';
import { basename, dirname, join } from 'node:path/posix';
import type { CallContext } from '../core/call.ts';
import type { MountTable } from './mount-table.ts';
import { removePlace } from './paths.ts';
import type { NodeTools } from './tools.ts';
import { unmountAll } from './unmount.ts';

const pattern = /\/\.switchboard-aside-[0-9a-f]{16}$/;

/** Beside the place itself: whoever can mount there can mount here, in whatever root. Always the same for one place, and never too long a name. */
export function asidePlace(place: string): string {
  const name = createHash('sha256').update(basename(place)).digest('hex').slice(0, 16);
  return join(dirname(place), `.switchboard-aside-${name}`);
}

/** Whether a mount point is such a place, so that nothing is published there. */
export function isAsidePlace(path: string): boolean {
  return pattern.test(path);
}

/** Removes what a call for `place` that did not come to its end left aside, and gives the table after that. */
export async function clearAside(
  call: CallContext,
  tools: NodeTools,
  table: MountTable,
  place: string,
): Promise<MountTable> {
  const after = await unmountAll(call, tools, table, asidePlace(place));
  await removeAside(place);
  return after;
}

/** Removes the place aside when nothing is mounted there. Nothing that hides the parent of `place` may be mounted. */
export async function removeAside(place: string): Promise<void> {
  // An empty folder hurts nobody, so it is no reason to fail.
  await removePlace(asidePlace(place)).catch(() => {});
}
