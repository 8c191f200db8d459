import type { CallContext } from '../core/call.ts';
import type { MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import {
  type ReadOnlyDevice,
  readOnlyDevices,
  removeNames,
  removeReadOnlyDevice,
  showsNodeOf,
} from './read-only-device.ts';
import { placeHash } from './records/record-name.ts';

/** What records of read-only devices have for an attacher. No volume context can name it. */
export const readOnlyAttacher = 'read-only';

/** Takes away the read-only devices that were made for a place, from which they must have been unmounted. None: success. */
export async function releaseReadOnly(call: CallContext, { tools }: NodePlane, place: string): Promise<void> {
  const hash = placeHash(place);
  for (const device of await readOnlyDevices()) {
    if (device.place === hash) await removeReadOnlyDevice(call, tools, device);
  }
  await removeNames(hash);
}

/** Takes away those that show the device `of` and are mounted nowhere: a call that did not come to its end left them. */
export async function releaseUnshown(
  call: CallContext,
  plane: NodePlane,
  table: MountTable,
  of: string,
): Promise<void> {
  const { tools, records } = plane;
  const isLeft = (device: ReadOnlyDevice) =>
    device.of === of && !table.mounts.some((mount) => showsNodeOf(device, mount));
  for (const device of (await readOnlyDevices()).filter(isLeft)) {
    call.log.warn('taking away a read-only device that is mounted nowhere', { device: device.name });
    await removeReadOnlyDevice(call, tools, device);
    await removeNames(device.place);
    for (const { name, record } of await records.all(table)) {
      if (record?.attacher === readOnlyAttacher && placeHash(record.place) === device.place) await records.remove(name);
    }
  }
}
