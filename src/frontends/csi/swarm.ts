/**
 * Docker Swarm as a CSI client: what it does differently from what the specification leads one to expect, and what has to be done about it.
 *
 * Its agent never unstages (moby/swarmkit#3178), publishes before it stages on the first use of a plugin, and shows volumes to containers only
 * at paths that it has fixed. Its command line has no file system type and no mount flags, cannot resize, and takes volumes for block devices
 * unless told otherwise, while its manager attaches all of them as mounts. So in Swarm mode
 *
 * - STAGE_UNSTAGE_VOLUME is not offered: NodePublishVolume stages by itself and NodeUnpublishVolume unstages;
 * - the parameters `fsType` and `mountFlags` stand in for what the command line lacks, and travel in the volume's context;
 * - CreateVolume takes over an existing volume of the same name whatever its size, and grows it if it is too small: the way to resize one is to
 *   forget it (`docker volume rm -f`) and to create it anew.
 */
import { basename, dirname, join } from 'node:path/posix';
import type { CallContext } from '../../core/call.ts';
import { nodeCapabilities } from '../../core/capabilities.ts';
import type { Driver, NodeOperations, PublicationOperations, VolumeOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { Parameters, Volume, VolumeCapability, VolumeContext, VolumeSpec } from '../../core/volume.ts';

export const swarmSettings = ['auto', 'on', 'off'] as const;
export type SwarmSetting = (typeof swarmSettings)[number];

export interface Swarm {
  /** True from the moment on at which it is certain that the client is Swarm. */
  isActive(): boolean;
  /** Whether a call about this path is Swarm's. One that is makes it certain for all that follow. */
  isCaller(path: string): boolean;
}

/** Within a managed plugin, dockerd is at the other end of every socket here. */
const pluginSockets = '/run/docker/plugins/';

/** Paths that SwarmKit's agent has fixed, followed by its id of the volume. */
const agentPath = /^\/data\/(?:published|staged)\/[^/]+$/;

/** `sockets`: paths of the unix sockets that CSI is served on. */
export function detectSwarm(setting: SwarmSetting, sockets: readonly string[]): Swarm {
  let active = setting === 'on' || (setting === 'auto' && sockets.some((path) => path.startsWith(pluginSockets)));
  return {
    isActive: () => active,
    isCaller(path) {
      active ||= setting === 'auto' && agentPath.test(path);
      return active;
    },
  };
}

/**
 * The driver as Swarm can use it. What is made of it must not be copied: what it advertises may change. `requireSeen` throws when Docker does not see
 * what is mounted at a path.
 */
export function forSwarm(driver: Driver, swarm: Swarm, requireSeen: RequireSeen = async () => {}): Driver {
  const { volumes, publication, node } = driver;
  return {
    ...driver,
    get advertised() {
      if (!swarm.isActive()) return driver.advertised;
      return {
        ...driver.advertised,
        node: nodeCapabilities(driver).filter((name) => name !== 'STAGE_UNSTAGE_VOLUME'),
      };
    },
    ...(volumes && { volumes: swarmVolumes(driver, volumes, swarm) }),
    ...(publication && { publication: swarmPublication(publication) }),
    ...(node && { node: swarmNode(node, swarm, requireSeen) }),
  };
}

function swarmVolumes(driver: Driver, volumes: VolumeOperations, swarm: Swarm): VolumeOperations {
  return {
    ...volumes,
    async create(call, spec) {
      if (!swarm.isActive()) return await volumes.create(call, spec);
      const wish = wishOf(spec.parameters, spec.capabilities);
      const capabilities = spec.capabilities.map((capability) => withWish(capability, wish));
      const volume = await createOrAdopt(call, driver, volumes, { ...spec, capabilities });
      return { ...volume, context: { ...volume.context, ...wish } };
    },
    validate: (call, query) => {
      const { context, wish } = withoutWish(query.context);
      const capabilities = query.capabilities.map((capability) => withWish(capability, wish));
      return volumes.validate(call, { ...query, context, capabilities });
    },
  };
}

async function createOrAdopt(
  call: CallContext,
  driver: Driver,
  volumes: VolumeOperations,
  spec: VolumeSpec,
): Promise<Volume> {
  try {
    return await volumes.create(call, spec);
  } catch (error) {
    if (!(error instanceof CallError) || error.code !== 'ALREADY_EXISTS') throw error;
    const existing = await createOfAnySize(call, volumes, spec, error);
    const { requiredBytes = 0 } = spec.capacity;
    if (existing.capacityBytes >= requiredBytes) return existing;
    if (!driver.expansion) throw error;
    const request = { volumeId: existing.id, capacity: { requiredBytes }, capability: spec.capabilities[0] };
    const { capacityBytes } = await driver.expansion.expand(call, request);
    return { ...existing, capacityBytes };
  }
}

async function createOfAnySize(
  call: CallContext,
  volumes: VolumeOperations,
  spec: VolumeSpec,
  refusal: CallError,
): Promise<Volume> {
  try {
    return await volumes.create(call, { ...spec, capacity: {} });
  } catch (error) {
    // It differs in more than its size, which the first answer says best.
    throw error instanceof CallError && error.code === 'ALREADY_EXISTS' ? refusal : error;
  }
}

function swarmPublication(publication: PublicationOperations): PublicationOperations {
  return {
    ...publication,
    publish(call, request) {
      const { context, wish } = withoutWish(request.context);
      return publication.publish(call, { ...request, context, capability: withWish(request.capability, wish) });
    },
  };
}

type RequireSeen = (path: string) => Promise<void>;

function swarmNode(node: NodeOperations, swarm: Swarm, requireSeen: RequireSeen): NodeOperations {
  const { stage, unstage } = node;
  const plain = <R extends { readonly context: VolumeContext; readonly capability: VolumeCapability }>(
    request: R,
  ): R => {
    const { context, wish } = withoutWish(request.context);
    return { ...request, context, capability: withWish(request.capability, wish) };
  };
  return {
    ...node,
    ...(stage && {
      stage(call, request) {
        swarm.isCaller(request.stagingPath);
        return stage(call, plain(request));
      },
    }),
    async publish(call, request) {
      const inner = plain(request);
      if (!stage || !swarm.isCaller(inner.targetPath)) return await node.publish(call, inner);
      const stagingPath = stagingPathFor(inner.targetPath);
      await stage(call, { ...inner, stagingPath });
      await node.publish(call, { ...inner, stagingPath });
      await requireSeen(inner.targetPath);
    },
    async unpublish(call, request) {
      await node.unpublish(call, request);
      if (!unstage || !swarm.isCaller(request.targetPath)) return;
      await unstage(call, { volumeId: request.volumeId, stagingPath: stagingPathFor(request.targetPath) });
    },
  };
}

/**
 * Where a volume is staged that is published there: made from the target path alone, so that it is found again after a restart. For SwarmKit's
 * own paths it is the path at which it would stage.
 */
export function stagingPathFor(targetPath: string): string {
  const folder = dirname(targetPath);
  if (basename(folder) === 'published') return join(dirname(folder), 'staged', basename(targetPath));
  return join(folder, `.staged-${basename(targetPath)}`);
}

/** Keys of the volume context in which wishes travel from CreateVolume to the nodes. */
const keys = {
  fsType: 'switchboard/fsType',
  mountFlags: 'switchboard/mountFlags',
  block: 'switchboard/block',
} as const;

function wishOf(parameters: Parameters, capabilities: readonly VolumeCapability[]): VolumeContext {
  return {
    ...(parameters.fsType && { [keys.fsType]: parameters.fsType }),
    ...(parameters.mountFlags && { [keys.mountFlags]: parameters.mountFlags }),
    ...(capabilities.length > 0 && capabilities.every(({ type }) => type === 'block') && { [keys.block]: 'true' }),
  };
}

/** A context as the driver gave it, and what was added to it. */
function withoutWish(context: VolumeContext): { readonly context: VolumeContext; readonly wish: VolumeContext } {
  const added: readonly string[] = Object.values(keys);
  const part = (isAdded: boolean) =>
    Object.fromEntries(Object.entries(context).filter(([key]) => added.includes(key) === isAdded));
  return { context: part(false), wish: part(true) };
}

function withWish(capability: VolumeCapability, wish: VolumeContext): VolumeCapability {
  if (wish[keys.block] !== undefined) return { type: 'block', mode: capability.mode };
  if (capability.type === 'block') return capability;
  const flags = wish[keys.mountFlags];
  return {
    ...capability,
    fsType: capability.fsType || (wish[keys.fsType] ?? ''),
    mountFlags: flags === undefined ? capability.mountFlags : [...capability.mountFlags, flags],
  };
}
