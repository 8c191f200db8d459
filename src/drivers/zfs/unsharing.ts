/**
 * One at a time on a host, whoever does it: `zfs destroy` and `zfs unshare` of the same file system. The one that comes second to unmounting it takes
 * that for a failure and shares it again, after the first has destroyed it.
 */
import { createHash } from 'node:crypto';
import type { Step } from '../../backends/shell/steps.ts';
import type { ZfsStore } from './store.ts';

/** So many locks are shared by all volumes of a host. */
const locks = 256;

/**
 * Held until the script ends. It is waited for, for at most a minute; `isNeeded`: without it, the next step is not run. Empty when ZFS does not share the
 * volumes.
 */
export function unsharingLock({ share }: ZfsStore, name: string, isNeeded: boolean): readonly Step[] {
  if (Object.keys(share.properties).length === 0) return [];
  const number = createHash('sha256').update(name).digest().readUInt16BE() % locks;
  const body = 'command exec 9>>"$1" && flock -w 60 9';
  return [{ argv: [`/run/lock/switchboard-unsharing-${number}`], body, ...(!isNeeded && { goOn: 'any' }) }];
}
