/**
 * One at a time on a host, whoever does it: `zfs destroy` and `zfs unshare` of the same file system. The one that comes second to unmounting it takes
 * that for a failure and shares it again, after the first has destroyed it.
 */
import { createHash } from 'node:crypto';
import type { Step } from '../../backends/shell/steps.ts';
import type { ZfsStore } from './store.ts';

/** So many locks are shared by all volumes of a host. */
const locks = 64;

/**
 * Held until the script ends. `wait`: for at most a minute, and where there is no such lock it goes on without; otherwise it fails when it is taken.
 * Empty when ZFS does not share the volumes.
 */
export function unsharingLock({ share }: ZfsStore, name: string, wait: boolean): readonly Step[] {
  if (Object.keys(share.properties).length === 0) return [];
  const number = createHash('sha256').update(name).digest().readUInt16BE() % locks;
  const body = `command exec 9>>"$1" && flock ${wait ? '-w 60' : '-n'} 9`;
  return [{ argv: [`/run/lock/switchboard-unsharing-${number}`], body, ...(wait && { goOn: 'any' }) }];
}
