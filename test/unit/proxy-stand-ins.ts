/** A proxy over drivers that keep everything in memory, for the tests of the proxy. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import * as v from 'valibot';
import { commonEntries } from '../../src/config/common.ts';
import { type CallContext, detachedContext } from '../../src/core/call.ts';
import type { Driver, WholeNodeOperations } from '../../src/core/driver.ts';
import { CallError } from '../../src/core/errors.ts';
import { createLogger, silentLogger } from '../../src/core/logger.ts';
import type { Snapshot, Volume, VolumeCapability, VolumeSpec } from '../../src/core/volume.ts';
import type { DriverEnvironment, DriverType } from '../../src/drivers/type.ts';
import { joining } from '../../src/pipeline/joining.ts';
import { type ProxyConfig, proxySchema } from '../../src/proxy/config.ts';
import type { ProxyEnvironment } from '../../src/proxy/environment.ts';
import { createProxy, type ProxyDriver } from '../../src/proxy/index.ts';

/** One driver made by the table below, and what happened to it. */
export interface Made {
  readonly environment: DriverEnvironment;
  readonly options: StandInOptions;
  readonly driver: Driver;
  closed: number;
}

export interface StandIn {
  readonly types: readonly DriverType[];
  readonly made: Made[];
  /** What the drivers were asked, such as `nas CreateVolume v1`. */
  readonly asked: string[];
  /** Specs and requests as the drivers got them. */
  readonly requests: unknown[];
  /** Volumes and snapshots by connection. */
  readonly volumes: Map<string, Map<string, Volume>>;
  readonly snapshots: Map<string, Map<string, Snapshot>>;
  /** Runs before each operation: the tests block or fail there. */
  before: (connection: string, operation: string, call: CallContext) => Promise<void>;
  close: (made: Made) => Promise<void>;
}

const memorySchema = v.object({
  ...commonEntries,
  memory: v.optional(
    v.object({
      text: v.optional(v.string(), ''),
      lacks: v.optional(v.array(v.string()), []),
      constrained: v.optional(v.boolean(), false),
      capacity: v.optional(v.number(), 100),
      refuse: v.optional(v.string()),
      pageSize: v.optional(v.number(), 1000),
    }),
    {},
  ),
});
export type StandInOptions = v.InferOutput<typeof memorySchema>;

function standIn(): StandIn {
  const world: StandIn = {
    types: [
      {
        name: 'memory',
        summary: 'keeps everything in memory',
        schema: memorySchema,
        example: { driver: 'memory' },
        create: (options: StandInOptions, environment: DriverEnvironment) => create(world, options, environment),
      },
    ],
    made: [],
    asked: [],
    requests: [],
    volumes: new Map(),
    snapshots: new Map(),
    before: async () => {},
    close: async () => {},
  };
  return world;
}

function create(world: StandIn, options: StandInOptions, environment: DriverEnvironment): Driver {
  const { lacks, constrained, capacity, refuse, pageSize } = options.memory;
  if (refuse) throw new CallError('INVALID_ARGUMENT', refuse);
  const name = environment.connection ?? 'direct';
  const volumes = mapOf(world.volumes, name);
  const snapshots = mapOf(world.snapshots, name);
  const topology = constrained ? environment.nodeTopology : undefined;
  async function start(call: CallContext, operation: string, request?: unknown): Promise<void> {
    world.asked.push(`${name} ${operation}`);
    if (request !== undefined) world.requests.push(request);
    await world.before(name, operation, call);
  }
  const has = (group: string) => !lacks.includes(group);
  const idFor = (spec: VolumeSpec) =>
    spec.name.slice(0, lacks.includes('shortening') ? undefined : environment.maxIdBytes);
  const page = <T>(all: Iterable<T>, { limit = Number.POSITIVE_INFINITY, token = '0' }) => {
    if (!/^\d+$/.test(token)) throw new CallError('ABORTED', 'no such token');
    const entries = [...all];
    const end = Number(token) + Math.min(limit, pageSize);
    const rest = end < entries.length ? { nextToken: String(end) } : {};
    return { entries: entries.slice(Number(token), end), ...rest };
  };
  const driver: Driver = {
    name: 'memory',
    constrained,
    ...(has('volumes') && {
      volumes: {
        sources: new Set(has('cloning') ? (['snapshot', 'volume'] as const) : []),
        idFor,
        async create(call, spec) {
          await start(call, `CreateVolume ${spec.name}`, spec);
          const id = idFor(spec);
          const volume: Volume = {
            id,
            capacityBytes: spec.capacity.requiredBytes ?? 0,
            context: { node_attach_driver: 'hostpath', text: options.memory.text },
            source: spec.source,
            topology: topology && [topology],
          };
          volumes.set(id, volume);
          return volume;
        },
        async delete(call, id) {
          await start(call, `DeleteVolume ${id}`);
          volumes.delete(id);
        },
        async validate(call, query) {
          await start(call, `ValidateVolumeCapabilities ${query.volumeId}`);
          found(volumes, query.volumeId);
          return { confirmed: true };
        },
        ...(has('get') && {
          async get(call: CallContext, id: string) {
            await start(call, `ControllerGetVolume ${id}`);
            return { volume: found(volumes, id), publishedNodeIds: ['secret-node'] };
          },
        }),
        ...(has('list') && {
          async list(call: CallContext, request: { limit?: number | undefined; token?: string | undefined }) {
            await start(call, 'ListVolumes', request);
            return page(
              [...volumes.values()].map((volume) => ({ volume })),
              clean(request),
            );
          },
        }),
        ...(has('modify') && {
          async modify(call: CallContext, id: string) {
            await start(call, `ControllerModifyVolume ${id}`);
          },
        }),
      },
    }),
    ...(has('snapshots') && {
      snapshots: {
        async create(call, spec) {
          await start(call, `CreateSnapshot ${spec.name}`, spec);
          found(volumes, spec.sourceVolumeId);
          const id = `${spec.sourceVolumeId}@${spec.name}`;
          const snapshot = {
            id,
            sourceVolumeId: spec.sourceVolumeId,
            sizeBytes: 1,
            createdAt: new Date(0),
            readyToUse: true,
          };
          snapshots.set(id, snapshot);
          return snapshot;
        },
        async delete(call, id) {
          await start(call, `DeleteSnapshot ${id}`);
          snapshots.delete(id);
        },
        async get(call, id) {
          await start(call, `GetSnapshot ${id}`);
          return found(snapshots, id);
        },
        ...(has('list') && {
          async list(
            call: CallContext,
            filter: { snapshotId?: string | undefined; sourceVolumeId?: string | undefined },
            request: object,
          ) {
            await start(call, 'ListSnapshots', filter);
            const fitting = [...snapshots.values()].filter(
              (one) =>
                (filter.snapshotId === undefined || one.id === filter.snapshotId) &&
                (filter.sourceVolumeId === undefined || one.sourceVolumeId === filter.sourceVolumeId),
            );
            return page(fitting, clean(request));
          },
        }),
      },
    }),
    ...(has('expansion') && {
      expansion: {
        mode: 'ONLINE',
        async expand(call, request) {
          await start(call, `ControllerExpandVolume ${request.volumeId}`, request);
          return { capacityBytes: request.capacity.requiredBytes ?? 0, nodeExpansionRequired: false };
        },
      },
    }),
    ...(has('capacity') && {
      async capacity(call: CallContext, query: unknown) {
        await start(call, 'GetCapacity', query);
        return { availableBytes: capacity };
      },
    }),
    ...(has('publication') && {
      publication: {
        async publish(call, request) {
          await start(call, `ControllerPublishVolume ${request.volumeId} ${request.nodeId}`);
          return { lun: '3' };
        },
        async unpublish(call, volumeId, nodeId) {
          await start(call, `ControllerUnpublishVolume ${volumeId} ${nodeId}`);
        },
      },
    }),
    ...(has('node') && { node: standInNode((call, text) => start(call, text), lacks) }),
    async close() {
      made.closed++;
      await world.close(made);
    },
  };
  const made: Made = { environment, options, driver, closed: 0 };
  world.made.push(made);
  return driver;
}

/** Node operations that only say that they were called. */
function standInNode(
  say: (call: CallContext, text: string) => void | Promise<void>,
  lacks: readonly string[] = [],
): WholeNodeOperations {
  const all: WholeNodeOperations = {
    extra: new Set(),
    info: async () => ({ nodeId: 'inner' }),
    stage: async (call, request) => say(call, `NodeStageVolume ${request.volumeId}`),
    unstage: async (call, request) => say(call, `NodeUnstageVolume ${request.volumeId}`),
    publish: async (call, request) => say(call, `NodePublishVolume ${request.volumeId}`),
    unpublish: async (call, request) => say(call, `NodeUnpublishVolume ${request.volumeId}`),
    async stats(call, request) {
      await say(call, `NodeGetVolumeStats ${request.volumeId}`);
      return { usage: [] };
    },
    async expand(call, request) {
      await say(call, `NodeExpandVolume ${request.volumeId}`);
      return {};
    },
  };
  return Object.fromEntries(Object.entries(all).filter(([name]) => !lacks.includes(name))) as unknown as typeof all;
}

export interface Switchboard {
  readonly proxy: ProxyDriver;
  readonly world: StandIn;
  readonly folder: string;
  /** Log lines so far. */
  readonly log: string[];
  readonly config: ProxyConfig;
  readonly environment: ProxyEnvironment;
  /** What the general node plane was asked. */
  readonly generic: string[];
  write(name: string, content?: string): Promise<void>;
}

/** A proxy over a new folder with these connection files (`true`: the smallest one). */
export async function switchboard(
  t: TestContext,
  files: Readonly<Record<string, string | true>> = { nas: true },
  proxyOptions: Readonly<Record<string, unknown>> = {},
  more: Partial<ProxyEnvironment> & { readonly main?: object } = {},
): Promise<Switchboard> {
  const base = await mkdtemp(join(tmpdir(), 'switchboard-proxy-'));
  const folder = join(base, 'connections');
  await mkdir(folder);
  const write = (name: string, content = minimal) => writeFile(join(folder, `${name}.yaml`), content);
  for (const [name, content] of Object.entries(files)) await write(name, content === true ? minimal : content);
  const world = standIn();
  const log: string[] = [];
  const generic: string[] = [];
  const { main, ...overrides } = more;
  const config = v.parse(proxySchema, { driver: 'proxy', ...main, proxy: { configFolder: folder, ...proxyOptions } });
  const environment: ProxyEnvironment = {
    csiName: 'org.example.csi',
    nodeName: 'node-1',
    hostName: 'host-1',
    env: {},
    readFile: async (path) => {
      throw Object.assign(new Error(`no ${path}`), { code: 'ENOENT' });
    },
    initiatorNameFile: '/etc/iscsi/initiatorname.iscsi',
    hostNqnFile: '/etc/nvme/hostnqn',
    run: async () => ({ code: 0, stdout: '', stderr: '' }),
    log: createLogger({ level: 'verbose', format: 'json', write: (line) => log.push(line) }),
    driverType: (name) => world.types.find((type) => type.name === name),
    driverNames: ['memory'],
    joining,
    nodePlane: () => standInNode((_call, text) => void generic.push(text)),
    ...overrides,
  };
  const proxy = createProxy(config, environment);
  t.after(async () => {
    await proxy.close();
    await rm(base, { recursive: true, force: true });
  });
  return { proxy, world, folder, log, config, environment, generic, write };
}

export const minimal = 'driver: memory\n';

/** A call without a caller, or one that `controller` ends. */
export function aCall(signal?: AbortSignal): CallContext {
  return detachedContext(silentLogger, signal);
}

export function aSpec(name: string, more: Partial<VolumeSpec> = {}): VolumeSpec {
  return {
    name,
    capacity: { requiredBytes: 1024 },
    capabilities: [aCapability],
    parameters: { connection: 'nas' },
    mutableParameters: {},
    topology: { requisite: [], preferred: [] },
    ...more,
  };
}

export const aCapability: VolumeCapability = {
  type: 'mount',
  mode: 'SINGLE_NODE_WRITER',
  fsType: '',
  mountFlags: [],
  mountGroup: '',
};

/** For assert.rejects: a CallError with this code whose message fits. */
export function failsWith(code: CallError['code'], pattern: RegExp = /./) {
  return (error: unknown): true => {
    if (!(error instanceof CallError)) throw error;
    if (error.code !== code || !pattern.test(error.message)) {
      throw new Error(`expected ${code} ${pattern}, got ${error.code}: ${error.message}`);
    }
    return true;
  };
}

function mapOf<T>(all: Map<string, Map<string, T>>, name: string): Map<string, T> {
  const existing = all.get(name);
  if (existing) return existing;
  const created = new Map<string, T>();
  all.set(name, created);
  return created;
}

function found<T>(map: Map<string, T>, id: string): T {
  const one = map.get(id);
  if (one === undefined) throw new CallError('NOT_FOUND', `there is no ${id}`);
  return one;
}

function clean(request: { limit?: number | undefined; token?: string | undefined }): {
  limit?: number;
  token?: string;
} {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
}
