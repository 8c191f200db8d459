import { stat } from 'node:fs/promises';
import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import { type CallContext, throwIfOver } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import { ifThere } from '../../../core/if-there.ts';
import { lifeOf, type Owner, thisOwner } from '../../owner.ts';
import type { NodeTools } from '../../tools.ts';
import { type Portal, portalText } from './portal.ts';
import { type RecordFile, recordsOf, recordsWhere, removeRecord } from './record-files.ts';
import type { IscsiVolume } from './volume.ts';

export interface Sample extends RecordFile {
  /** The name of the target that it says. */
  readonly iqn: string;
}

/** Nobody has this domain. What follows says who made the record. */
const prefix = 'iqn.1970-01.invalid:sample.';

/**
 * A node record as iscsiadm makes it by iscsid.conf for a portal, which is gone again: of a target that there is not, for a record that iscsiadm makes
 * of the volume's target cannot be told from an administrator's until it is marked. Throws FAILED_PRECONDITION when iscsiadm cannot make any, or
 * keeps them where they are not seen. One at a time: all samples of this process have one name. `root`: that of iscsiadm.
 */
export async function makeSample(
  call: CallContext,
  tools: NodeTools,
  root: string,
  volume: IscsiVolume,
  portal: Portal,
): Promise<Sample> {
  const owner = await thisOwner();
  const iqn = `${prefix}${owner}`;
  const by = volume.interface ? ['-I', volume.interface] : [];
  const args = ['-m', 'node', '-T', iqn, '-p', portalText(portal), ...by, '-o', 'new'];
  await removeLeftSamples(root);
  try {
    await call.waitingFor('`iscsiadm` to make a record', () =>
      tools.run(call, { program: 'iscsiadm', args, timeoutMs: tools.limits.iscsi }),
    );
    const [record] = await recordsOf(root, iqn);
    if (!record) throw nowhere(root);
    return { ...record, iqn };
  } catch (error) {
    throwIfOver(call.signal);
    if (!(error instanceof CommandFailed)) throw error;
    const why = `iscsiadm cannot make a node record: ${error.stderr}`;
    throw new CallError('FAILED_PRECONDITION', why, { cause: error });
  } finally {
    for (const record of await recordsOf(root, iqn)) await removeRecord(record);
  }
}

/** Milliseconds after which nobody works with a sample whose process cannot be looked at, because it ran in another container. */
const longestMs = 10 * 60_000;

/** Removes what processes left that were killed meanwhile. */
export async function removeLeftSamples(root: string): Promise<void> {
  const self = await thisOwner();
  for (const record of await recordsWhere(root, (iqn) => iqn.startsWith(prefix))) {
    const owner =
      record.path
        .split('/')
        .find((name) => name.startsWith(prefix))
        ?.slice(prefix.length) ?? '';
    const isOfThisBoot = owner.split('.')[0] === self.split('.')[0];
    if (!isOfThisBoot || (await isAbandoned(owner, record))) await removeRecord(record);
  }
}

async function isAbandoned(owner: Owner, { path }: RecordFile): Promise<boolean> {
  const life = await lifeOf(owner);
  if (life !== 'unknown') return life === 'dead';
  const found = await ifThere(() => stat(path));
  return found !== undefined && Date.now() - found.mtimeMs > longestMs;
}

function nowhere(root: string): CallError {
  const where = root === '/' ? '' : ` of ${root}`;
  return new CallError(
    'FAILED_PRECONDITION',
    `iscsiadm keeps its node records neither in /var/lib/iscsi/nodes nor in /etc/iscsi/nodes${where}: are they of this machine, and seen here?`,
  );
}
