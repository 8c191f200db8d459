/** Every connection's storage, asked all at once: none waits for another. */
import { asCallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import type { Capacity } from '../../core/volume.ts';
import { mayHang } from '../../node/file-system-kind.ts';
import { limited } from '../../proxy/limited.ts';
import { bounded, whyOf } from './bounded.ts';
import type { ConfiguredConnection } from './configured.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('connections');

/** Milliseconds for a connection to answer, and for its driver to be closed. */
const limits = { answer: 5000, close: 1000 } as const;

/** More than this is worth a word: calls take several such steps. In milliseconds. */
const slowMs = 1000;

type Looks = Pick<Inspection, 'configured' | 'call' | 'files' | 'modes' | 'mounts'>;

export async function checkConnections(inspection: Looks): Promise<readonly Finding[]> {
  const { connections, main } = inspection.configured;
  if (connections.length > 0) return Promise.all(connections.map((one) => checkConnection(inspection, one)));
  if (main?.kind !== 'proxy') return [];
  const advice = `put a file into ${main.loaded.value.proxy.configFolder}; "switchboard drivers" tells what it can be`;
  return [finding('warning', 'none', 'there is no connection that can be used', advice)];
}

async function checkConnection(inspection: Looks, connection: ConfiguredConnection): Promise<Finding> {
  const { name, driver, controllerMount } = connection;
  if (!inspection.modes.controller && controllerMount !== undefined) {
    return finding('ok', name, `${driver}: the share as a whole is for controllers; nodes mount its volumes only`);
  }
  const began = performance.now();
  try {
    await assertAlive(inspection, connection);
    const capacity = await ask(inspection, connection);
    const took = Math.round(performance.now() - began);
    const detail = `${driver}: reachable, ${took} ms${capacity ? `, ${formatSize(capacity.availableBytes)} free` : ''}`;
    if (took > slowMs) return finding('warning', name, detail, 'it is slow: look at the storage and the network to it');
    return finding('ok', name, detail);
  } catch (error) {
    return finding('error', name, `${driver}: ${whyOf(error)}`, adviceFor(asCallError(error).code));
  }
}

/** A base path on storage that hangs would hold a thread of this process for ever: a child is sent first. */
async function assertAlive({ files, mounts }: Looks, { basePath }: ConfiguredConnection): Promise<void> {
  if (basePath !== undefined && mayHang(mounts.covering(basePath))) await files.space(basePath);
}

async function ask({ call }: Looks, connection: ConfiguredConnection): Promise<Capacity | undefined> {
  return limited(call, limits.answer, async (bound) => {
    const driver = await connection.open();
    try {
      await driver.probe?.(bound);
      return await driver.capacity?.(bound, { capabilities: [], parameters: {} });
    } finally {
      await bounded(limits.close, 'closing', driver.close()).catch(() => {});
    }
  });
}

function adviceFor(code: string): string {
  if (code === 'UNAVAILABLE' || code === 'DEADLINE_EXCEEDED') {
    return 'see whether the storage is up and whether this machine reaches it; other connections are not affected';
  }
  if (code === 'UNAUTHENTICATED' || code === 'PERMISSION_DENIED')
    return 'see the account and its rights in the connection’s file';
  return 'see the connection’s file, and "switchboard check"';
}
