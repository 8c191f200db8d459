import { lookup } from 'node:dns/promises';
import { type CallContext, untilOver } from '../../core/call.ts';
import { within } from '../../core/within.ts';
import type { MountTable } from '../mount-table.ts';
import { hostKey, shareSourceOf } from '../share-source.ts';

/** Milliseconds. */
const patience = 3000;

const none: ReadonlySet<string> = new Set();

/**
 * The addresses of a host, where something is mounted by NFS from a host of another name that could be the same. Empty when they cannot be found
 * out: then a mount under another name is not recognised, which does no harm.
 */
export async function otherNames(call: CallContext, table: MountTable, host: string): Promise<ReadonlySet<string>> {
  const isElsewhere = table.mounts.some((mount) => {
    const found = shareSourceOf(mount);
    return found?.family === 'nfs' && found.host !== host;
  });
  if (!isElsewhere) return none;
  const found = lookup(host, { all: true }).catch(() => []);
  const addresses = await call.waitingFor(`the addresses of ${host}`, () =>
    untilOver(call.signal, within(patience, found, [])),
  );
  return new Set(addresses.map(({ address }) => hostKey(address)));
}
