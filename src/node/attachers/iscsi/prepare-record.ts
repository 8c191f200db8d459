import { stat } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { resolveInRoot } from '../../../backends/exec/root-path.ts';
import type { CallContext } from '../../../core/call.ts';
import { withLock } from '../../keyed-lock.ts';
import type { NodeTools } from '../../tools.ts';
import type { LoginSettings } from './login-settings.ts';
import { isMarked, marked, withSettings } from './node-record.ts';
import { isSamePortal, type Portal } from './portal.ts';
import { type RecordFile, recordsOf, writeRecord } from './record-files.ts';
import { makeSample, type Sample } from './sample-record.ts';
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
 * Makes sure that iscsiadm has a record for a portal, with these settings. A new one has, besides, those of iscsid.conf; it is there whole, and
 * marked, or not at all. One that somebody else has made is used as it is, with the secrets. `root`: that of iscsiadm.
 */
export async function prepareRecord(
  call: CallContext,
  tools: NodeTools,
  root: string,
  volume: IscsiVolume,
  portal: Portal,
  settings: LoginSettings,
): Promise<void> {
  const records = (await recordsOf(root, volume.iqn)).filter((record) => isOf(record, volume, portal));
  for (const { path, text } of records) {
    const wanted = withSettings(text, isMarked(text) ? settings.all : settings.secret);
    if (wanted !== text) await writeRecord(path, wanted);
  }
  if (records.length > 0) return;
  // Of many that come at once, the first one learns what the others need.
  await withLock(`iscsi records of ${root}`, call.signal, async () => {
    if (await makeFromTemplate(root, volume, portal, settings.all)) return;
    const sample = await makeSample(call, tools, root, volume, portal);
    await learn(root, volume, sample);
    const path = sample.path.replace(`/${sample.iqn}/`, `/${volume.iqn}/`);
    await writeRecord(path, marked(withSettings(sample.text, { 'node.name': volume.iqn, ...settings.all })));
  });
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
  await writeRecord(join(template.folder, volume.iqn, `${host},${port}`), marked(text));
  return true;
}

/** Where the record is tells where records go, if it is as iscsiadm makes them now. */
async function learn(root: string, volume: IscsiVolume, { iqn, path, text, portal }: Sample): Promise<void> {
  const name = `/${iqn}/${portal.host},${portal.port}`;
  if (volume.interface || !path.endsWith(name)) return;
  const folder = path.slice(0, -name.length);
  templates.set(root, { text, folder, edition: await configurationEdition(root) });
}

async function configurationEdition(root: string): Promise<string> {
  const path = await resolveInRoot(root, '/etc/iscsi/iscsid.conf');
  const found = path === undefined ? undefined : await stat(join(root, path)).catch(() => undefined);
  return found ? `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs}` : '';
}
