/** Publishing makes the dataset, unpublishing destroys it. */
import { type Dataset, ownValue } from '../../backends/zfs/dataset.ts';
import { isMissing, StepFailed } from '../../backends/zfs/failure.ts';
import type { ZfsHost } from '../../backends/zfs/zfs-host.ts';
import type { CallContext } from '../../core/call.ts';
import type { NodeOperations, PublishRequest, WholeNodeOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import { type CapabilityRules, requireCapabilities } from '../common/capability-check.ts';
import { isVolumeId } from '../common/volume-id.ts';
import { userProperties } from '../zfs/user-properties.ts';
import { asOptions } from '../zfs/wanted-properties.ts';
import { type InlineProperties, inlineProperties } from './inline-properties.ts';

export interface InlineOptions {
  readonly zfs: ZfsHost;
  /** Where the datasets are. */
  readonly parent: string;
  readonly properties: InlineProperties;
  readonly rules: CapabilityRules;
  readonly driver: string;
  readonly instanceId: string | undefined;
}

/** There is nothing to stage. */
export function inlineNode(plane: WholeNodeOperations, options: InlineOptions): NodeOperations {
  return {
    extra: new Set(),
    info: plane.info,
    owns: (call, volumeId) => isOurs(call, options, volumeId),
    async publish(call, request) {
      const { capability, targetPath, readonly, publishContext, volumeId } = request;
      requireCapabilities([capability], options.rules);
      if (capability.type === 'mount' && capability.mountFlags.length > 0) {
        throw new CallError('INVALID_ARGUMENT', 'inline volumes take no mount flags; set properties of ZFS');
      }
      const dataset = await make(call, options, request);
      const context = { node_attach_driver: 'zfs-local', zfs_asset_name: dataset };
      await plane.publish(call, { volumeId, targetPath, capability, readonly, context, publishContext });
    },
    async unpublish(call, request) {
      await plane.unpublish(call, request);
      await destroy(call, options, request.volumeId);
    },
    stats: plane.stats,
  };
}

async function make(call: CallContext, options: InlineOptions, request: PublishRequest): Promise<string> {
  const { zfs, parent, driver, instanceId } = options;
  const { volumeId, context } = request;
  if (!isVolumeId(volumeId))
    throw new CallError('INVALID_ARGUMENT', `${JSON.stringify(volumeId)} cannot be the name of a dataset`);
  const name = `${parent}/${volumeId}`;
  const properties = {
    ...inlineProperties(context, options.properties),
    // Mounted by whoever publishes it, and by nobody when the machine starts.
    mountpoint: 'legacy',
    [userProperties.volumeName]: volumeId,
    [userProperties.managed]: 'true',
    [userProperties.driver]: driver,
    ...(instanceId && { [userProperties.instanceId]: instanceId }),
    [userProperties.success]: 'true',
  };
  const reading = await zfs.reading(call, { name, properties: marks });
  const [, created, state] = await zfs.run(call, 'zfs create', [
    { argv: zfs.zfs('create', '-p', '-o', 'canmount=off', parent), goOn: 'any' },
    { argv: zfs.zfs('create', ...asOptions(properties), name), goOn: 'any' },
    { argv: reading.argv },
  ]);
  const [dataset] = state?.code === 0 ? reading.datasets(state) : [];
  if (!dataset) throw new StepFailed(zfs.host, `zfs create ${name}`, created ?? { code: 1, stdout: '', stderr: '' });
  if (isMarked(options, dataset)) return name;
  throw new CallError('FAILED_PRECONDITION', `${name} exists already, and was not made as an inline volume`);
}

async function isOurs(call: CallContext, options: InlineOptions, volumeId: string): Promise<boolean> {
  if (!isVolumeId(volumeId)) return false;
  const dataset = await options.zfs.readOne(call, `${options.parent}/${volumeId}`, marks);
  return dataset !== undefined && isMarked(options, dataset);
}

const marks = [userProperties.managed, userProperties.driver];

/** Volumes of other drivers may lie beside: those outlive whoever uses them. */
function isMarked({ driver }: InlineOptions, dataset: Dataset): boolean {
  return ownValue(dataset, userProperties.managed) === 'true' && ownValue(dataset, userProperties.driver) === driver;
}

async function destroy(call: CallContext, options: InlineOptions, volumeId: string): Promise<void> {
  if (!(await isOurs(call, options, volumeId))) return;
  const { zfs, parent } = options;
  const name = `${parent}/${volumeId}`;
  // With its snapshots: nobody else can have a use for them.
  const [result] = await zfs.run(call, 'zfs destroy', [{ argv: zfs.zfs('destroy', '-r', '-f', name) }]);
  if (result.code !== 0 && !isMissing(result)) throw new StepFailed(zfs.host, `zfs destroy ${name}`, result);
}
