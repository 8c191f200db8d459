import { join } from 'node:path/posix';
import type { CallContext } from '../core/call.ts';
import type { PublishRequest } from '../core/driver.ts';
import { CallError } from '../core/errors.ts';
import { isAsidePlace } from './aside-place.ts';
import { forgetUnmounted } from './attach-recorded.ts';
import { type AttachedVolume, attachVolume, isReadonly, wantedFlags } from './attach-volume.ts';
import { blockFile } from './block-file.ts';
import { whyDeadUnlessSeen } from './dead-mount.ts';
import { ensureMounted } from './ensure-mounted.ts';
import { growIfSmaller } from './file-systems/grow.ts';
import type { BlockDevice } from './file-systems/probe.ts';
import { withLock } from './keyed-lock.ts';
import { locationOf, locationOfMount } from './mount-location.ts';
import { restrictionsOf } from './mount-options.ts';
import type { MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { checkedPath, preparePlace, resolvePlace } from './paths.ts';
import { canStageAgain, saysStale, stageAgain } from './stage-again.ts';
import { wantBind } from './want-bind.ts';
import { wantBlock } from './want-block.ts';
import type { Wanted } from './wanted.ts';

/**
 * NodePublishVolume: mounts the staged volume at the target path, or the volume itself when the orchestrator did not stage it. The target
 * and its parents are made if need be. Throws ALREADY_EXISTS when it is published there already in another way, FAILED_PRECONDITION when
 * something else is mounted there, or when a SINGLE_NODE_SINGLE_WRITER volume is published elsewhere.
 */
export async function publishVolume(call: CallContext, plane: NodePlane, request: PublishRequest): Promise<void> {
  try {
    await publishOnce(call, plane, request);
  } catch (error) {
    const { stagingPath } = request;
    if (!stagingPath || !saysStale(error)) throw error;
    const mount = (await plane.tools.readTable()).at(checkedPath(stagingPath, 'staging_target_path'));
    if (!mount || !canStageAgain(call, mount)) throw error;
    await stageAgain(call, plane, { ...request, stagingPath }, mount);
    await publishOnce(call, plane, request);
  }
}

async function publishOnce(call: CallContext, plane: NodePlane, request: PublishRequest): Promise<void> {
  const { tools } = plane;
  const path = checkedPath(request.targetPath, 'target_path');
  const table = await tools.readTable();
  if (request.stagingPath) {
    const staged = await fromStaging(call, plane, request, request.stagingPath, table);
    return await publishAt(call, plane, request, path, table, staged);
  }
  const placed = { ...request, table, place: path };
  const attached = await attachVolume(call, plane, placed, isReadonly(request.capability, request.readonly));
  try {
    await publishAt(call, plane, request, path, table, attached);
  } catch (error) {
    await forgetUnmounted(call, plane, placed);
    throw error;
  }
}

async function publishAt(
  call: CallContext,
  plane: NodePlane,
  request: PublishRequest,
  path: string,
  table: MountTable,
  { wanted: found, device }: AttachedVolume,
): Promise<void> {
  const { tools } = plane;
  const { volumeId, capability } = request;
  const target = await preparePlace(call, tools, table, path);
  if (capability.type === 'mount') return await mountAlone(call, plane, request, found, target, table, device);
  const wanted = await wantBlock(call, plane, { volumeId, path, place: target, table }, found);
  try {
    await mountAlone(call, plane, request, wanted, target, await tools.readTable());
  } catch (error) {
    await wanted.failed?.();
    throw error;
  }
}

/** Mounts it, unless its access mode wants it to be nowhere else and it is. */
async function mountAlone(
  call: CallContext,
  { tools }: NodePlane,
  request: PublishRequest,
  wanted: Wanted,
  target: string,
  table: MountTable,
  device?: BlockDevice | undefined,
): Promise<void> {
  const publish = async (current: MountTable) => {
    const mount = await ensureMounted(call, tools, current, wanted, target);
    if (device) await growIfSmaller(call, tools, device, mount);
  };
  if (request.capability.mode !== 'SINGLE_NODE_SINGLE_WRITER') return await publish(table);
  await withLock(`single writer ${wanted.key}`, call.signal, async () => {
    const current = await tools.readTable();
    await refuseSecondTarget(current, wanted, target);
    await publish(current);
  });
}

async function fromStaging(
  call: CallContext,
  plane: NodePlane,
  request: PublishRequest,
  stagingPath: string,
  table: MountTable,
  again = true,
): Promise<AttachedVolume> {
  const { capability } = request;
  const { tools } = plane;
  const path = checkedPath(stagingPath, 'staging_target_path');
  const staging = await resolvePlace(call, tools, table, path);
  const source = staging && (capability.type === 'block' ? join(staging, blockFile) : staging);
  const mount = source && table.at(source);
  if (!mount) throw new CallError('FAILED_PRECONDITION', `the volume is not staged at ${path}; stage it first`);
  const dead = await whyDeadUnlessSeen(call, tools, mount);
  if (dead !== undefined) {
    if (again && canStageAgain(call, mount)) {
      await stageAgain(call, plane, { ...request, stagingPath }, mount);
      return await fromStaging(call, plane, request, stagingPath, await tools.readTable(), false);
    }
    throw new CallError(
      'FAILED_PRECONDITION',
      `the volume staged at ${path} is dead: ${dead}; unstage and stage it again`,
    );
  }
  // Options of the file system took effect when it was staged; those of a single mount are all that a bind mount can have.
  const flags = [...restrictionsOf(wantedFlags(plane, capability))];
  const readonly = isReadonly(capability, request.readonly);
  return {
    wanted: wantBind(tools, table, source, capability.type === 'block' ? 'file' : 'directory', { readonly, flags }),
  };
}

async function refuseSecondTarget(table: MountTable, wanted: Wanted, target: string): Promise<void> {
  const isShownBy = (await wanted.shownBy?.()) ?? wanted.matches;
  const here = new Set([locationOf(table, target), wanted.home && locationOf(table, wanted.home)]);
  const elsewhere = table.mounts.find(
    (mount) =>
      isShownBy(mount) &&
      ![target, wanted.home].includes(mount.mountPoint) &&
      !isAsidePlace(mount.mountPoint) &&
      !here.has(locationOfMount(table, mount)),
  );
  if (!elsewhere) return;
  throw new CallError(
    'FAILED_PRECONDITION',
    `the volume is published at ${elsewhere.mountPoint} already, and its access mode allows a single writer only`,
  );
}
