import type { CallContext } from '../core/call.ts';
import type { StageRequest } from '../core/driver.ts';
import { CallError } from '../core/errors.ts';
import { forgetUnmounted, type PlacedRequest } from './attach-recorded.ts';
import { type AttachedVolume, attachVolume } from './attach-volume.ts';
import { blockFile } from './block-file.ts';
import { ensureMounted } from './ensure-mounted.ts';
import { growIfSmaller } from './file-systems/grow.ts';
import type { NodePlane } from './node-plane.ts';
import { checkedPath, makePlace, preparePlace } from './paths.ts';

/**
 * NodeStageVolume: attaches the volume and mounts it at the staging path, which is made if need be. A blank device gets its file system here.
 * One volume may be staged at several paths. Throws ALREADY_EXISTS when it is staged there already in another way.
 */
export async function stageVolume(call: CallContext, plane: NodePlane, request: StageRequest): Promise<void> {
  const { tools } = plane;
  const { capability } = request;
  const path = checkedPath(request.stagingPath, 'staging_target_path');
  const table = await tools.readTable();
  // Several nodes may read it at once only if none of them writes.
  const readonly = capability.mode === 'MULTI_NODE_READER_ONLY';
  const placed = { ...request, table, place: path };
  const attached = await attachVolume(call, plane, placed, readonly);
  try {
    await mountStaged(call, plane, placed, attached);
  } catch (error) {
    await forgetUnmounted(call, plane, placed);
    throw error;
  }
}

async function mountStaged(
  call: CallContext,
  { tools }: NodePlane,
  { capability, table, place: path }: PlacedRequest,
  { wanted, device }: AttachedVolume,
): Promise<void> {
  const staging = await preparePlace(call, tools, table, path);
  const file = `${staging}/${blockFile}`;
  const other = capability.type === 'block' ? table.at(staging) : table.at(file);
  if (other && wanted.on === 'file') throw stagedOtherwise(path, 'mounted file system');
  if (other && wanted.on === 'directory') throw stagedOtherwise(path, 'block device');
  if (wanted.on === 'file') await makePlace(staging, 'directory');

  const mount = await ensureMounted(call, tools, table, wanted, wanted.on === 'file' ? file : staging);
  if (device) await growIfSmaller(call, tools, device, mount);
}

function stagedOtherwise(path: string, how: string): CallError {
  return new CallError('ALREADY_EXISTS', `the volume is staged at ${path} as a ${how}; unstage it first`);
}
