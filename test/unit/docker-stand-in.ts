/** A world for the Docker door: connections that keep volumes in memory, a node that mounts in memory, and a state folder that outlives a door. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type CallContext, detachedContext, throwIfOver } from '../../src/core/call.ts';
import type { Catalog } from '../../src/core/catalog.ts';
import type { Driver, VolumeOperations } from '../../src/core/driver.ts';
import { CallError } from '../../src/core/errors.ts';
import { findingsOf, joinFindings, volumesNamed } from '../../src/core/find-volumes.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { VolumeSpec, VolumeStatus } from '../../src/core/volume.ts';
import { openMountRecords } from '../../src/frontends/docker/mount-records.ts';
import type { Options } from '../../src/frontends/docker/options.ts';
import { secretFiles } from '../../src/frontends/docker/secret-files.ts';
import { createVolumeDriver } from '../../src/frontends/docker/volume-driver.ts';
import { openVolumeIndex } from '../../src/frontends/docker/volume-index.ts';
import type { VolumeDriver } from '../../src/frontends/docker/workshop.ts';
import type { Mount } from '../../src/node/mount-table.ts';

export interface World {
  readonly folder: string;
  readonly driver: Driver;
  /** Volumes by connection and id; what is absent is gone. */
  readonly volumes: Map<string, Map<string, VolumeStatus>>;
  /** Connections whose storage does not answer. */
  readonly down: Set<string>;
  /** What is mounted now: path → volume id. */
  readonly mounted: Map<string, string>;
  /** Operations in their order, such as `publish v:nas/a /…`. */
  readonly did: string[];
  readonly specs: VolumeSpec[];
  readonly secretsSeen: unknown[];
  /** Runs before each operation of driver and node; the tests fail or block there. */
  before: (operation: string, call: CallContext) => Promise<void>;
  boot: string;
  requireSeen: (path: string) => Promise<void>;
  /** Whether back ends remember parameters. */
  remembers: boolean;
  /** A door on the same state, as a new process would be. */
  open(options?: { defaults?: Options; secretsFolder?: string }): VolumeDriver;
}

export async function world(t: TestContext, connections: readonly string[] = ['nas', 'san']): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), 'docker-door-'));
  const doors: VolumeDriver[] = [];
  t.after(async () => {
    for (const door of doors) door.leftovers.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const made: Omit<World, 'driver' | 'open'> = {
    folder,
    volumes: new Map(connections.map((name) => [name, new Map()])),
    down: new Set(),
    mounted: new Map(),
    did: [],
    specs: [],
    secretsSeen: [],
    before: async () => {},
    boot: 'boot-1',
    requireSeen: async () => {},
    remembers: true,
  };
  const driver = driverOf(made as World);
  const open: World['open'] = ({ defaults = {}, secretsFolder } = {}) => {
    const door = createVolumeDriver(
      {
        driver,
        catalog: driver.catalog as Catalog,
        index: openVolumeIndex(join(folder, 'state')),
        mounts: openMountRecords({
          stateFolder: join(folder, 'state'),
          mountRoot: join(folder, 'mnt'),
          bootId: async () => made.boot,
          readTable: async () => ({ at: (path) => mountAt(made.mounted, path) }),
        }),
        secrets: secretFiles(secretsFolder),
        requireSeen: (path) => made.requireSeen(path),
        defaults,
        scope: undefined,
      },
      silentLogger,
    );
    doors.push(door);
    return door;
  };
  return Object.assign(made, { driver, open });
}

export const aCall = (signal?: AbortSignal): CallContext => detachedContext(silentLogger, signal);

function mountAt(mounted: ReadonlyMap<string, string>, path: string): Mount | undefined {
  const id = mounted.get(path);
  if (id === undefined) return undefined;
  const nothing = { id: 1, parentId: 0, options: [], superOptions: [], fsType: 'x', source: id };
  return { ...nothing, device: '999:1', root: `/${id}`, mountPoint: path };
}

const split = (id: string) => {
  const [, connection = '', inner = ''] = /^v:([^/]+)\/(.+)$/.exec(id) ?? [];
  return { connection, inner };
};

function driverOf(world: World): Driver {
  const step = async (operation: string, call: CallContext) => {
    throwIfOver(call.signal);
    world.did.push(operation);
    world.secretsSeen.push(call.secrets);
    await world.before(operation, call);
  };
  const reach = (connection: string) => {
    const found = world.volumes.get(connection);
    if (!found) throw new CallError('FAILED_PRECONDITION', `connection "${connection}": there is no file`);
    if (world.down.has(connection)) throw new CallError('UNAVAILABLE', `connection "${connection}": no answer`);
    return found;
  };
  const statusOf = (id: string): VolumeStatus => {
    const { connection, inner } = split(id);
    const status = reach(connection).get(inner);
    if (!status) throw new CallError('NOT_FOUND', `there is no volume ${id}`);
    if (world.remembers) return status;
    const { parameters: _forgotten, ...rest } = status;
    return rest;
  };
  const volumes: VolumeOperations = {
    sources: new Set(['volume', 'snapshot']),
    idFor: (spec) => spec.name,
    async create(call, spec) {
      await step(`create ${spec.parameters.connection}/${spec.name}`, call);
      world.specs.push(spec);
      const connection = spec.parameters.connection;
      if (connection === undefined) throw new CallError('INVALID_ARGUMENT', 'the parameter "connection" is missing');
      const there = reach(connection);
      const volume = {
        id: `v:${connection}/${spec.name}`,
        capacityBytes: spec.capacity.requiredBytes ?? 0,
        context: { node_attach_driver: 'memory' },
      };
      if (!there.has(spec.name)) there.set(spec.name, { volume, parameters: spec.parameters });
      return volume;
    },
    async delete(call, id) {
      await step(`delete ${id}`, call);
      const { connection, inner } = split(id);
      reach(connection).delete(inner);
    },
    validate: async () => ({ confirmed: true }),
    async get(call, id) {
      await world.before(`get ${id}`, call);
      return statusOf(id);
    },
  };
  const inConnection = (connection: string): VolumeOperations => ({
    ...volumes,
    get: async (_call, inner) => statusOf(`v:${connection}/${inner}`),
  });
  const inner = (status: VolumeStatus) => ({
    ...status,
    volume: { ...status.volume, id: split(status.volume.id).inner },
  });
  const ask = (connection: string, work: () => Promise<readonly VolumeStatus[]>) =>
    findingsOf(
      connection,
      async () => (await work()).map(inner),
      (status) => ({ ...status, volume: { ...status.volume, id: `v:${connection}/${status.volume.id}` } }),
    );
  const catalog: Catalog = {
    parse: (text) => {
      const [, connection, name = ''] = /^([a-z]+)\/(.+)$/.exec(text) ?? [];
      return connection === undefined ? { name: text } : { connection, name };
    },
    connectionOf: (id) => split(id).connection || undefined,
    async find(call, { connection, name }) {
      const names = connection === undefined ? [...world.volumes.keys()] : [connection];
      return joinFindings(
        await Promise.all(names.map((one) => ask(one, () => volumesNamed(call, inConnection(one), name)))),
      );
    },
    async all() {
      const list = async (one: string) => [...reach(one).keys()].map((id) => statusOf(`v:${one}/${id}`));
      return joinFindings(await Promise.all([...world.volumes.keys()].map((one) => ask(one, () => list(one)))));
    },
    isShared: async () => true,
  };
  return {
    name: 'stand-in',
    constrained: false,
    volumes,
    catalog,
    publication: {
      async publish(call, { volumeId, nodeId }) {
        await step(`attach ${volumeId} ${nodeId}`, call);
        reach(split(volumeId).connection);
        return { lun: '1' };
      },
      unpublish: (call, volumeId, nodeId) => step(`let go of ${volumeId} ${nodeId}`, call),
    },
    node: {
      extra: new Set(),
      info: async () => ({ nodeId: 'node-1' }),
      async stage(call, { volumeId, stagingPath }) {
        await step(`stage ${volumeId}`, call);
        world.mounted.set(stagingPath, volumeId);
      },
      async unstage(call, { volumeId, stagingPath }) {
        await step(`unstage ${volumeId}`, call);
        world.mounted.delete(stagingPath);
      },
      async publish(call, { volumeId, targetPath, stagingPath }) {
        await step(`publish ${volumeId}`, call);
        if (!world.mounted.has(stagingPath ?? '')) throw new CallError('FAILED_PRECONDITION', 'it is not staged');
        world.mounted.set(targetPath, volumeId);
      },
      async unpublish(call, { volumeId, targetPath }) {
        await step(`unpublish ${volumeId}`, call);
        world.mounted.delete(targetPath);
      },
    },
    close: async () => {},
  };
}
