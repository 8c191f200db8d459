import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { writeRecord } from './attach-recorded.ts';
import { deviceNode } from './device-node.ts';
import { deviceShown } from './device-shown.ts';
import { isDeviceGone } from './devices.ts';
import type { Mount, MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { inspectPath } from './paths.ts';
import {
  followSize,
  makeReadOnlyDevice,
  type ReadOnlyDevice,
  readOnlyDeviceAt,
  readOnlyDevices,
  removeReadOnlyDevice,
  showsNodeOf,
} from './read-only-device.ts';
import { placeHash } from './records/record-name.ts';
import { readOnlyAttacher, releaseUnshown } from './release-read-only.ts';
import { detachMount } from './unmount.ts';
import { wantBind } from './want-bind.ts';
import type { Wanted } from './wanted.ts';

/** Where a block volume is published. */
export interface BlockTarget {
  readonly volumeId: string;
  /** As records know it. */
  readonly path: string;
  /** As the mount table knows it. */
  readonly place: string;
  readonly table: MountTable;
}

/**
 * A block volume at a target. `whole` is its device as it is; whoever may only read gets a device that cannot be written. Throws ALREADY_EXISTS when
 * it is published there in the other of these ways, FAILED_PRECONDITION where it cannot be made read-only.
 */
export async function wantBlock(
  call: CallContext,
  plane: NodePlane,
  target: BlockTarget,
  whole: Wanted,
): Promise<Wanted> {
  const { table, place } = target;
  const found = await inspectPath(call, plane.tools, table, whole.title);
  if (found.is !== 'device') throw new CallError('FAILED_PRECONDITION', `${whole.title} is no block device`);
  const { device: number } = found;
  const shownBy = async () => {
    const others = await showing(number);
    return (mount: Mount) => whole.matches(mount) || others.some((one) => showsNodeOf(one, mount));
  };
  const existing = table.at(place);
  if (!whole.readonly) {
    const other = existing && (await readOnlyDeviceOf(call, plane, table, existing));
    if (other?.of === number) throw publishedOtherwise(whole, place, 'only for reading');
    return { ...whole, shownBy };
  }
  if (existing && whole.matches(existing)) throw publishedOtherwise(whole, place, 'as a device that can be written');
  const device = await ensureDevice(call, plane, target, number);
  const path = await deviceNode(call, plane.tools, device.name, device.number);
  const own = wantBind(plane.tools, table, path, 'file', { readonly: false, flags: [] });
  const failed = async () => {
    if (call.signal.aborted) return;
    await releaseUnshown(call, plane, await plane.tools.readTable(), number);
  };
  return { ...own, title: `${whole.title} for reading`, key: whole.key, home: whole.home, shownBy, failed };
}

async function ensureDevice(
  call: CallContext,
  plane: NodePlane,
  { volumeId, path, place, table }: BlockTarget,
  number: string,
): Promise<ReadOnlyDevice> {
  const { tools, connection } = plane;
  const hash = placeHash(path);
  const made = (await readOnlyDevices()).filter((one) => one.place === hash);
  const known = made.find((one) => one.of === number);
  for (const other of made) if (other !== known) await clearOther(call, plane, table.at(place), other);
  await writeRecord(call, plane, table, {
    volumeId,
    attacher: readOnlyAttacher,
    identity: { device: number },
    place: path,
    connection,
  });
  if (!known) return await makeReadOnlyDevice(call, tools, number, hash);
  await followSize(call, tools, known);
  return known;
}

/** What was made for this place and is of no use any more. One that is mounted here and works is somebody's. */
async function clearOther(
  call: CallContext,
  { tools }: NodePlane,
  existing: Mount | undefined,
  other: ReadOnlyDevice,
): Promise<void> {
  const isShown = existing !== undefined && showsNodeOf(other, existing);
  if (isShown && !(await isDeviceGone(other.of))) return;
  if (isShown) {
    call.log.warn('detaching a dead mount', { path: existing.mountPoint, why: `its device ${other.of} is gone` });
    await detachMount(call, tools, existing);
  }
  await removeReadOnlyDevice(call, tools, other);
}

async function showing(number: string): Promise<readonly ReadOnlyDevice[]> {
  return (await readOnlyDevices()).filter(({ of }) => of === number);
}

async function readOnlyDeviceOf(
  call: CallContext,
  { tools }: NodePlane,
  table: MountTable,
  mount: Mount,
): Promise<ReadOnlyDevice | undefined> {
  const device = await deviceShown(call, tools, table, mount);
  return device === undefined ? undefined : await readOnlyDeviceAt(device);
}

function publishedOtherwise({ title }: Wanted, place: string, how: string): CallError {
  return new CallError('ALREADY_EXISTS', `${title} is published at ${place} already, ${how}; unpublish it first`);
}
