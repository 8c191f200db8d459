/** Volumes of all connections by name. A connection that cannot be asked is told of beside what the others have. */
import type { CallContext } from '../core/call.ts';
import type { Catalog, CatalogName, Findings } from '../core/catalog.ts';
import type { VolumeOperations } from '../core/driver.ts';
import type { CallError } from '../core/errors.ts';
import { everyVolume, findingsOf, joinFindings, volumesNamed } from '../core/find-volumes.ts';
import type { VolumeStatus } from '../core/volume.ts';
import type { ProxyOptions } from './config.ts';
import { namingConnection } from './connection-error.ts';
import { isConnectionName } from './connection-name.ts';
import type { Connections } from './connections.ts';
import { decodeHandle } from './handle.ts';
import { limited } from './limited.ts';
import { outwardStatus } from './outward.ts';

/** Milliseconds that one connection may take. */
const limits = { find: 5000, list: 15_000 } as const;

/** Milliseconds for which a connection that did not answer in time is not asked again: Docker asks for every volume of every container. */
const pauseMs = 10_000;

export function proxyCatalog(options: ProxyOptions, connections: Connections): Catalog {
  const silent = new Map<string, { readonly until: number; readonly error: CallError }>();

  async function askOne(
    call: CallContext,
    name: string,
    limitMs: number,
    work: (call: CallContext, volumes: VolumeOperations) => Promise<readonly VolumeStatus[] | undefined>,
  ): Promise<Findings> {
    const before = silent.get(name);
    if (before && before.until > performance.now()) {
      return { entries: [], failures: [{ connection: name, error: before.error }], complete: new Set() };
    }
    silent.delete(name);
    const ask = () =>
      limited(call, limitMs, async (bounded) => {
        const lease = await connections.find(bounded, name);
        try {
          const volumes = lease?.connection.driver.volumes;
          return volumes ? await work(bounded, volumes) : [];
        } finally {
          lease?.release();
        }
      });
    const began = performance.now();
    const findings = await findingsOf(name, ask, (status) => outwardStatus(name, status));
    const failures = findings.failures.map(({ error }) => ({ connection: name, error: namingConnection(name, error) }));
    const [failure] = failures;
    if (failure && !call.signal.aborted && performance.now() - began > limitMs * 0.9) {
      silent.set(name, { until: performance.now() + pauseMs, error: failure.error });
    }
    return { ...findings, failures };
  }

  async function askAll(
    call: CallContext,
    limitMs: number,
    work: (call: CallContext, volumes: VolumeOperations) => Promise<readonly VolumeStatus[] | undefined>,
  ): Promise<Findings> {
    const names = await connections.names();
    return joinFindings(await Promise.all(names.map((name) => askOne(call, name, limitMs, work))));
  }

  return {
    parse: parseName,
    connectionOf: (volumeId) => decodeHandle('volume', volumeId)?.connection,
    defaultConnection: options.defaultConnection,
    find(call, { connection, name }) {
      const work = (bounded: CallContext, volumes: VolumeOperations) => volumesNamed(bounded, volumes, name);
      return connection === undefined ? askAll(call, limits.find, work) : askOne(call, connection, limits.find, work);
    },
    all: (call) => askAll(call, limits.list, everyVolume),
    async isShared(call) {
      const known = await Promise.all(
        (await connections.names()).map(async (name) => {
          const lease = await connections.find(call, name).catch(() => undefined);
          const driver = lease?.connection.driver;
          lease?.release();
          return driver?.volumes && !driver.constrained;
        }),
      );
      const told = known.filter((shared) => shared !== undefined);
      return told.length > 0 && told.every(Boolean);
    },
  };
}

/** What comes before the first slash is a connection, unless it cannot be one. */
function parseName(text: string): CatalogName {
  const slash = text.indexOf('/');
  const connection = text.slice(0, Math.max(slash, 0));
  const name = text.slice(slash + 1);
  return isConnectionName(connection) && name !== '' ? { connection, name } : { name: text };
}
