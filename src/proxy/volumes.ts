/** Volumes of all connections: the storage class names the connection of a new one, the handle that of every other. */
import type { VolumeOperations } from '../core/driver.ts';
import { CallError } from '../core/errors.ts';
import type { ContentSource, Topology, Volume, VolumeSpec } from '../core/volume.ts';
import { chosenConnection, useChosen } from './chosen-connection.ts';
import type { ProxyOptions } from './config.ts';
import type { Connection } from './connection.ts';
import { required } from './connection-error.ts';
import type { Connections } from './connections.ts';
import { assertHandleFits, decodeHandle, encodeHandle, requireHandle } from './handle.ts';
import { listAll } from './listing.ts';
import { mapEntries, outwardStatus, outwardVolume } from './outward.ts';
import { placeVolume } from './placement.ts';

export function proxyVolumes(options: ProxyOptions, connections: Connections): Required<VolumeOperations> {
  return {
    sources: new Set(['snapshot', 'volume']),
    reportsCondition: true,
    // A driver may shorten the name, which only it knows: this serves to tell requests apart.
    idFor: (spec) =>
      encodeHandle('volume', chosenConnection(spec.parameters, options.defaultConnection) ?? '', spec.name),
    async create(call, spec) {
      const name = chosenConnection(spec.parameters, options.defaultConnection);
      const source = spec.source && innerSource(spec.source, name);
      return useChosen(call, connections, name, async (connection) => {
        const { inner, topology } = prepared(connection, { ...spec, source });
        const volume = await required(connection.driver.volumes, connection.driver, 'CreateVolume').create(call, inner);
        return outwardVolume(connection.name, topology ? { ...volume, topology } : volume);
      });
    },
    async delete(call, volumeId) {
      const handle = decodeHandle('volume', volumeId);
      if (!handle) return;
      await connections.use(call, handle.connection, ({ driver }) =>
        required(driver.volumes, driver, 'DeleteVolume').delete(call, handle.id),
      );
    },
    async validate(call, query) {
      const { connection, id } = requireHandle('volume', query.volumeId);
      return connections.use(call, connection, ({ driver }) =>
        required(driver.volumes, driver, 'ValidateVolumeCapabilities').validate(call, { ...query, volumeId: id }),
      );
    },
    async get(call, volumeId) {
      const { connection, id } = requireHandle('volume', volumeId);
      return connections.use(call, connection, async ({ driver }) =>
        outwardStatus(connection, await required(driver.volumes?.get, driver, 'ControllerGetVolume')(call, id)),
      );
    },
    list: (call, page) =>
      listAll(call, connections, options.listing, page, ({ name, driver }) => {
        const list = driver.volumes?.list;
        return (
          list && (async (inner, one) => mapEntries(await list(inner, one), (status) => outwardStatus(name, status)))
        );
      }),
    async modify(call, volumeId, mutableParameters) {
      const { connection, id } = requireHandle('volume', volumeId);
      await connections.use(call, connection, ({ driver }) =>
        required(driver.volumes?.modify, driver, 'ControllerModifyVolume')(call, id, mutableParameters),
      );
    },
  };
}

/** The source as the driver knows it. Throws NOT_FOUND for an id that was never given out, INVALID_ARGUMENT for one of another connection. */
function innerSource({ type, id }: ContentSource, name: string | undefined): ContentSource {
  const handle = requireHandle(type, id);
  if (name !== undefined && handle.connection !== name) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `the ${type} is on connection "${handle.connection}" and the new volume would be on "${name}": both must be on the same`,
    );
  }
  return { type, id: handle.id };
}

/** Everything that can be refused before something is created. */
function prepared(connection: Connection, spec: VolumeSpec): { inner: VolumeSpec; topology?: Volume['topology'] } {
  const { driver, places } = connection;
  const volumes = required(driver.volumes, driver, 'CreateVolume');
  if (spec.source && !volumes.sources.has(spec.source.type)) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `its driver ${driver.name} cannot fill a volume from a ${spec.source.type}`,
    );
  }
  if (Object.keys(spec.mutableParameters).length > 0 && !volumes.modify) {
    throw new CallError('INVALID_ARGUMENT', `its driver ${driver.name} has no mutable parameters`);
  }
  // Where the operator has said where volumes can be reached from, that stands in place of what the driver would say.
  const topology: readonly Topology[] | undefined = places && placeVolume(places, spec.topology);
  const inner = topology ? { ...spec, topology: { requisite: [], preferred: [] } } : spec;
  assertHandleFits('volume', connection.name, volumes.idFor(inner));
  return topology ? { inner, topology } : { inner };
}
