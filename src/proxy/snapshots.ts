/** Snapshots of all connections: each is on the connection of its volume. */
import type { CallContext } from '../core/call.ts';
import type { SnapshotFilter, SnapshotOperations } from '../core/driver.ts';
import { asCallError } from '../core/errors.ts';
import type { Page, PageRequest, Snapshot } from '../core/volume.ts';
import type { ProxyOptions } from './config.ts';
import type { Connection } from './connection.ts';
import { cannot, required } from './connection-error.ts';
import type { Connections } from './connections.ts';
import { decodeHandle, encodeHandle, maxHandleBytes, requireHandle } from './handle.ts';
import { type ListOne, listAll } from './listing.ts';
import { mapEntries, outwardSnapshot } from './outward.ts';
import { decodePageToken, encodePageToken } from './page-token.ts';

const nothing: Page<Snapshot> = { entries: [] };

export function proxySnapshots(options: ProxyOptions, connections: Connections): Required<SnapshotOperations> {
  return {
    async create(call, spec) {
      const { connection, id } = requireHandle('volume', spec.sourceVolumeId);
      return connections.use(call, connection, async ({ driver }) => {
        const snapshots = required(driver.snapshots, driver, 'CreateSnapshot');
        const snapshot = await snapshots.create(call, { ...spec, sourceVolumeId: id });
        const bytes = Buffer.byteLength(encodeHandle('snapshot', connection, snapshot.id));
        // It exists now, and works: refusing it would only lose it.
        if (bytes > maxHandleBytes)
          call.log.warn('the snapshot id is longer than the CSI specification allows', { bytes });
        return outwardSnapshot(connection, snapshot);
      });
    },
    async delete(call, snapshotId) {
      const handle = decodeHandle('snapshot', snapshotId);
      if (!handle) return;
      await connections.use(call, handle.connection, ({ driver }) =>
        required(driver.snapshots, driver, 'DeleteSnapshot').delete(call, handle.id),
      );
    },
    async get(call, snapshotId) {
      const { connection, id } = requireHandle('snapshot', snapshotId);
      return connections.use(call, connection, async ({ driver }) =>
        outwardSnapshot(connection, await required(driver.snapshots?.get, driver, 'GetSnapshot')(call, id)),
      );
    },
    async list(call, filter, page) {
      const { snapshotId, sourceVolumeId } = filter;
      if (snapshotId === undefined && sourceVolumeId === undefined) {
        return listAll(call, connections, options.listing, page, (connection) => listOf(connection, {}));
      }
      const snapshot = snapshotId === undefined ? undefined : decodeHandle('snapshot', snapshotId);
      const source = sourceVolumeId === undefined ? undefined : decodeHandle('volume', sourceVolumeId);
      // Something that was never given out has no snapshots; that is an answer, not an error.
      if ((snapshotId !== undefined && !snapshot) || (sourceVolumeId !== undefined && !source)) return nothing;
      const name = snapshot?.connection ?? source?.connection;
      if (name === undefined || (source && source.connection !== name)) return nothing;
      const inner = { snapshotId: snapshot?.id, sourceVolumeId: source?.id };
      return connections.use(call, name, (connection) => listFiltered(call, connection, inner, page));
    },
  };
}

function listOf({ name, driver }: Connection, filter: SnapshotFilter): ListOne<Snapshot> | undefined {
  const list = driver.snapshots?.list;
  return (
    list && (async (call, page) => mapEntries(await list(call, filter, page), (one) => outwardSnapshot(name, one)))
  );
}

async function listFiltered(
  call: CallContext,
  connection: Connection,
  filter: SnapshotFilter,
  page: PageRequest,
): Promise<Page<Snapshot>> {
  const { name, driver } = connection;
  const list = listOf(connection, filter);
  if (list) {
    const token = page.token === undefined ? undefined : decodePageToken(page.token).token;
    const { entries, nextToken } = await list(call, { ...page, token });
    return nextToken ? { entries, nextToken: encodePageToken({ connection: name, token: nextToken }) } : { entries };
  }
  const get = driver.snapshots?.get;
  if (!get || filter.snapshotId === undefined) throw cannot(driver.name, 'ListSnapshots');
  try {
    const found = await get(call, filter.snapshotId);
    const fits = filter.sourceVolumeId === undefined || filter.sourceVolumeId === found.sourceVolumeId;
    return fits ? { entries: [outwardSnapshot(name, found)] } : nothing;
  } catch (error) {
    if (asCallError(error).code === 'NOT_FOUND') return nothing;
    throw error;
  }
}
