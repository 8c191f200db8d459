import { type CallContext, throwIfOver } from '../core/call.ts';
import { asCallError } from '../core/errors.ts';
import { deviceHolders } from './devices.ts';
import type { NodeTools } from './tools.ts';

/** Throws when the device `major:minor` is in use. */
export type RefuseInUse = (call: CallContext, device: string) => Promise<void>;

/** What uses a disk on this machine, for people: a mount, another device, or whatever `refuseInUse` tells of. Undefined: nothing does. */
export async function whyUsed(
  call: CallContext,
  { readTable, sysfs }: Pick<NodeTools, 'readTable' | 'sysfs'>,
  { name, number }: { readonly name: string; readonly number: string },
  refuseInUse: RefuseInUse,
): Promise<string | undefined> {
  const { mounts } = await readTable();
  // A device node that is mounted is that of a volume that is wanted as a block device, which need not be open all the time.
  const mounted = mounts.find((mount) => mount.device === number || mount.root === `/${name}`);
  if (mounted) return `it is mounted at ${mounted.mountPoint}`;
  const holders = await deviceHolders(number, sysfs);
  if (holders.length > 0) return `it is part of ${holders.join(', ')}`;
  try {
    await refuseInUse(call, number);
    return undefined;
  } catch (error) {
    throwIfOver(call.signal);
    return asCallError(error).message;
  }
}
