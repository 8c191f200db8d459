/** Bringing a volume to this node and away again: controller and node side in the order that an orchestrator would call them. */
import { rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { CallContext } from '../../core/call.ts';
import type { Driver, NodeOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { MountCapability, VolumeContext } from '../../core/volume.ts';
import type { Places } from './mount-records.ts';

export interface AttachWish {
  readonly volumeId: string;
  readonly context: VolumeContext;
  readonly capability: MountCapability;
}

/** This node's id for the storage, where the storage has to be told who attaches a volume. */
export async function nodeIdFor(call: CallContext, driver: Driver): Promise<string | undefined> {
  return driver.publication && (await nodeOf(driver).info(call)).nodeId;
}

/**
 * Mounts the volume at `places.target`. Repeated: success. `isMounted`: it is there for somebody else already; as long as it is in order, its
 * storage need not be asked then.
 */
export async function attach(
  call: CallContext,
  driver: Driver,
  wish: AttachWish,
  places: Places,
  nodeId: string | undefined,
  isMounted: boolean,
): Promise<void> {
  const node = nodeOf(driver);
  const publish = (publishContext: Readonly<Record<string, string>>) =>
    node.publish(call, {
      ...wish,
      publishContext,
      targetPath: places.target,
      stagingPath: node.stage ? places.staging : undefined,
      readonly: false,
    });
  if (isMounted && node.stage && (await unlessBroken(() => publish({})))) return;
  const publishContext =
    driver.publication && nodeId !== undefined
      ? await driver.publication.publish(call, { ...wish, nodeId, readonly: false })
      : {};
  await node.stage?.(call, { ...wish, publishContext, stagingPath: places.staging });
  await publish(publishContext);
}

/** False: what is staged there is not usable any more, or not staged at all. */
async function unlessBroken(publish: () => Promise<void>): Promise<boolean> {
  try {
    await publish();
    return true;
  } catch (error) {
    if (error instanceof CallError && error.code === 'FAILED_PRECONDITION') return false;
    throw error;
  }
}

/** Unmounts it and lets go of the storage. Success when there is nothing to do. */
export async function detach(
  call: CallContext,
  driver: Driver,
  volumeId: string,
  places: Places,
  nodeId: string | undefined,
): Promise<void> {
  const node = nodeOf(driver);
  await node.unpublish(call, { volumeId, targetPath: places.target });
  await node.unstage?.(call, { volumeId, stagingPath: places.staging });
  if (nodeId !== undefined) await driver.publication?.unpublish(call, volumeId, nodeId);
  // What somebody else put there is theirs.
  await rmdir(dirname(places.target)).catch(() => {});
}

function nodeOf(driver: Driver): NodeOperations {
  if (driver.node) return driver.node;
  throw new CallError('UNIMPLEMENTED', `driver ${driver.name} cannot mount volumes`);
}
