import { stat } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import { resolveInRoot } from '../../../backends/exec/root-path.ts';
import { type CallContext, throwIfOver } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import type { NodeTools } from '../../tools.ts';
import { withSettings } from './node-record.ts';
import { isSamePortal, type Portal, portalText } from './portal.ts';
import { type RecordFile, recordsOf, writeRecord } from './record-files.ts';
import type { IscsiVolume } from './volume.ts';

/** What iscsiadm makes of iscsid.conf, and where it puts it. */
interface Template {
  readonly text: string;
  /** The folder of all records. */
  readonly folder: string;
  /** Of iscsid.conf, when it was made. */
  readonly edition: string;
}

/** By root. One for the process: all drivers share the host. */
const templates = new Map<string, Template>();

/** The next records are made by iscsiadm itself: what was known of them has turned out not to hold. */
export function forgetTemplate(root: string): void {
  templates.delete(root);
}

/**
 * Makes sure that iscsiadm has a record for a portal, with these settings. A record that is there keeps its other settings; a new one has those of
 * iscsid.conf. `root`: that of iscsiadm.
 */
export async function prepareRecord(
  call: CallContext,
  tools: NodeTools,
  root: string,
  volume: IscsiVolume,
  portal: Portal,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const find = async () => (await recordsOf(root, volume.iqn)).filter((record) => isOf(record, volume, portal));
  let records = await find();
  if (records.length === 0) {
    if (await makeFromTemplate(root, volume, portal, settings)) return;
    await makeAnew(call, tools, volume, portal);
    records = await find();
    if (records[0]) await learn(root, volume, records[0]);
  }
  if (records.length === 0) throw nowhere(root);
  for (const { path, text } of records) {
    const wanted = withSettings(text, settings);
    if (wanted !== text) await writeRecord(path, wanted);
  }
}

function isOf(record: RecordFile, volume: IscsiVolume, portal: Portal): boolean {
  return isSamePortal(record.portal, portal) && record.interface === (volume.interface ?? 'default');
}

async function makeFromTemplate(
  root: string,
  volume: IscsiVolume,
  { host, port }: Portal,
  settings: Readonly<Record<string, string>>,
): Promise<boolean> {
  const template = templates.get(root);
  // Records for other interfaces have what is set for these.
  if (!template || volume.interface || template.edition !== (await configurationEdition(root))) return false;
  const text = withSettings(template.text, {
    'node.name': volume.iqn,
    'node.conn[0].address': host,
    'node.conn[0].port': String(port),
    ...settings,
  });
  await writeRecord(join(template.folder, volume.iqn, `${host},${port}`), text);
  return true;
}

async function makeAnew(call: CallContext, tools: NodeTools, volume: IscsiVolume, portal: Portal): Promise<void> {
  const where = ['-m', 'node', '-T', volume.iqn, '-p', portalText(portal)];
  const by = volume.interface ? ['-I', volume.interface] : [];
  try {
    await call.waitingFor('`iscsiadm` to make a record', () =>
      tools.run(call, { program: 'iscsiadm', args: [...where, ...by, '-o', 'new'], timeoutMs: tools.limits.iscsi }),
    );
  } catch (error) {
    throwIfOver(call.signal);
    if (!(error instanceof CommandFailed)) throw error;
    throw new CallError('FAILED_PRECONDITION', `iscsiadm cannot make a node record: ${error.stderr}`, { cause: error });
  }
}

/** Where the record is tells where records go, if it is as iscsiadm makes them now. */
async function learn(root: string, volume: IscsiVolume, { path, text, portal }: RecordFile): Promise<void> {
  const name = `/${volume.iqn}/${portal.host},${portal.port}`;
  if (volume.interface || !path.endsWith(name)) return;
  const folder = path.slice(0, -name.length);
  templates.set(root, { text, folder, edition: await configurationEdition(root) });
}

async function configurationEdition(root: string): Promise<string> {
  const path = await resolveInRoot(root, '/etc/iscsi/iscsid.conf');
  const found = path === undefined ? undefined : await stat(join(root, path)).catch(() => undefined);
  return found ? `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs}` : '';
}

function nowhere(root: string): CallError {
  const where = root === '/' ? '' : ` of ${root}`;
  return new CallError(
    'FAILED_PRECONDITION',
    `iscsiadm keeps its node records neither in /var/lib/iscsi/nodes nor in /etc/iscsi/nodes${where}: are they of this machine, and seen here?`,
  );
}
