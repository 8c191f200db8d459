import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import { asidePlace, isAsidePlace } from './aside-place.ts';
import { deviceShown } from './device-shown.ts';
import { withLock } from './keyed-lock.ts';
import { locationOf, locationOfMount } from './mount-location.ts';
import type { Mount, MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { readOnlyDeviceAt, readOnlyDevices, showsNodeOf } from './read-only-device.ts';
import { placeHash, type RecordSubject } from './records/record-name.ts';
import type { FoundRecord } from './records/records.ts';
import { isDetachable, releaseRecorded, releaseUnrecorded } from './release.ts';
import { readOnlyAttacher, releaseReadOnly } from './release-read-only.ts';
import { unmountAll } from './unmount.ts';
import { deviceLock } from './want-device.ts';
import { showsSame } from './wanted.ts';

export interface Taking {
  /** The path that records know: as it was asked for, without symbolic links resolved. */
  readonly path: string;
  /** Where something may be mounted for that path. */
  readonly places: readonly string[];
  /** Removes the places when nothing is mounted there any more. */
  clear(): Promise<void>;
  /** Whether a volume without a record is detached too when its attacher knows its device. */
  readonly unrecorded?: boolean;
}

/**
 * Unmounts everything at the places and aside of them, removes them, and detaches what the records tell of, in this order, and the records last:
 * so the same call completes what was interrupted anywhere. Throws FAILED_PRECONDITION while it is in use; a volume that is to be detached stays
 * mounted then if this mount namespace has it mounted elsewhere.
 */
export async function takeAway(call: CallContext, plane: NodePlane, table: MountTable, taking: Taking): Promise<void> {
  const { tools, records } = plane;
  const { path, places } = taking;
  const found = await records.of(table, path);
  const [mount] = places.flatMap((place) => [...table.stackAt(place), ...table.stackAt(asidePlace(place))]);
  // Most of what is unpublished has nothing to detach: then it does not matter what device it is.
  const matters = mount !== undefined && (found.length > 0 || taking.unrecorded || mayBeNode(mount));
  const shown = matters ? await deviceShown(call, tools, table, mount) : undefined;
  const readOnly = shown === undefined ? undefined : await readOnlyDeviceAt(shown);
  const device = readOnly?.of ?? shown;
  const unrecorded = taking.unrecorded && found.length === 0 ? await identified(plane, path, device) : undefined;
  const subjects = [...found.flatMap(({ record }) => record ?? []), ...(unrecorded ? [unrecorded] : [])];
  const elsewhere = new Map<RecordSubject, readonly Mount[]>();
  for (const subject of subjects) {
    elsewhere.set(subject, await mountedElsewhere(plane, table, subject, places, mount, device));
  }
  // Without a record, what was mounted before may well be what this is a part of: a disk of the host.
  const theirs = (unrecorded && elsewhere.get(unrecorded)?.filter((one) => isBefore(table, one, mount))) ?? [];
  const [other] = [...elsewhere.values()].flat().filter((one) => !theirs.includes(one));
  if (other) throw stillMounted(other);

  const unmount = async () => {
    let after = table;
    for (const place of places.flatMap((one) => [asidePlace(one), one])) {
      after = await unmountAll(call, tools, after, place);
    }
    return after;
  };
  // Nobody makes a second mount from one that is just going away.
  const after = await (mount ? withLock(deviceLock(device ?? mount.device), call.signal, unmount) : unmount());
  await taking.clear();
  const isRecorded = found.some(isReadOnly);
  if (!isRecorded && readOnly?.place === placeHash(path)) await releaseReadOnly(call, plane, path);
  // What shows the volume goes before the volume.
  const inOrder = [...found.filter(isReadOnly), ...found.filter((one) => !isReadOnly(one))];
  for (const one of inOrder) await releaseRecorded(call, plane, after, one, device);
  if (unrecorded && device && theirs.length === 0) await releaseUnrecorded(call, plane, after, unrecorded, device);
}

/** Whether a mount may show a device node: of a directory in a file system of that kind, it does no harm to look. */
function mayBeNode({ root, fsType }: Mount): boolean {
  return root !== '/' && (fsType === 'devtmpfs' || fsType === 'tmpfs');
}

const isReadOnly = ({ record }: FoundRecord) => record?.attacher === readOnlyAttacher;

/** What a whole device is known as by the one attacher that can have attached it. Two who claim it: nobody knows. */
async function identified(
  plane: NodePlane,
  place: string,
  device: string | undefined,
): Promise<RecordSubject | undefined> {
  if (device === undefined) return undefined;
  const found: RecordSubject[] = [];
  for (const [attacher, { identify }] of Object.entries(plane.attachers)) {
    const identity = await identify?.(device);
    if (identity) found.push({ attacher, identity, place });
  }
  return found.length === 1 ? found[0] : undefined;
}

/**
 * Where a volume is mounted that is to be detached, besides the places, and nobody else has a record of that. While it is, it cannot be detached. It is
 * better not to begin then: an orchestrator that is told so keeps the volume from other nodes.
 */
async function mountedElsewhere(
  plane: NodePlane,
  table: MountTable,
  subject: RecordSubject,
  places: readonly string[],
  shown: Mount | undefined,
  device: string | undefined,
): Promise<readonly Mount[]> {
  if (!shown || !isDetachable(plane, subject)) return [];
  const here = new Set(places.map((place) => locationOf(table, place)));
  const readOnly = (await readOnlyDevices()).filter(({ of }) => of === device);
  const elsewhere = table.mounts.filter(
    (mount) =>
      (showsSame(mount, shown) ||
        (shown.root === '/' && mount.device === shown.device) ||
        readOnly.some((one) => showsNodeOf(one, mount))) &&
      !places.includes(mount.mountPoint) &&
      !isAsidePlace(mount.mountPoint) &&
      !here.has(locationOfMount(table, mount)),
  );
  return elsewhere.length === 0 || (await plane.records.isElsewhere(table, subject)) ? [] : elsewhere;
}

/** The table is in the order in which mounts were made. */
function isBefore({ mounts }: MountTable, one: Mount, other: Mount | undefined): boolean {
  return other !== undefined && mounts.indexOf(one) < mounts.indexOf(other);
}

function stillMounted({ mountPoint }: Mount): CallError {
  return new CallError(
    'FAILED_PRECONDITION',
    `the volume is still mounted at ${mountPoint}; it stays staged and attached until that is unmounted`,
  );
}
