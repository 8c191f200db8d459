/** The iSCSI sessions of this machine, as sysfs shows them: whoever made them, and whether iscsid runs or not. */
import { realpath } from 'node:fs/promises';
import { basename, dirname } from 'node:path/posix';
import { ifThere } from '../../../core/if-there.ts';
import { namesIn, textOf } from '../../sysfs.ts';
import type { Portal } from './portal.ts';

export interface IscsiSession {
  /** The number that iscsiadm knows it by. */
  readonly id: number;
  /** As the session was told it. */
  readonly iqn: string;
  /** Whether commands get through to the target. */
  readonly isLive: boolean;
  /** As it was told to connect to: a target may have sent it on to another. Undefined: not known. */
  readonly portal: Portal | undefined;
  /** The name of the interface's record: `default`, if none was given. */
  readonly interface: string;
  /** Its directory in sysfs, with its disks. */
  readonly directory: string;
  /** The SCSI host: `host3`. */
  readonly host: string;
  /** The target's number on that host; undefined on kernels that do not tell. */
  readonly targetId: number | undefined;
}

/** All sessions with a target, in the order in which they were made. */
export async function sessionsOf(sysfs: string, iqn: string): Promise<readonly IscsiSession[]> {
  const names = await namesIn(`${sysfs}/class/iscsi_session`);
  const ids = names.flatMap((name) => /^session(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  const found = await Promise.all(ids.toSorted((a, b) => a - b).map((id) => readSession(sysfs, id, iqn)));
  return found.filter((session) => session !== undefined);
}

async function readSession(sysfs: string, id: number, wanted: string): Promise<IscsiSession | undefined> {
  const entry = `${sysfs}/class/iscsi_session/session${id}`;
  const iqn = await text(`${entry}/targetname`);
  if (iqn.toLowerCase() !== wanted.toLowerCase()) return undefined;
  const directory = await ifThere(() => realpath(`${entry}/device`));
  if (directory === undefined) return undefined;
  const [state, name, target, portal] = await Promise.all([
    text(`${entry}/state`),
    text(`${entry}/ifacename`),
    text(`${entry}/target_id`),
    portalOf(sysfs, directory),
  ]);
  return {
    id,
    iqn,
    isLive: state === 'LOGGED_IN',
    portal,
    interface: name && name !== '<NULL>' ? name : 'default',
    directory,
    host: hostAbove(directory),
    targetId: /^\d+$/.test(target) ? Number(target) : undefined,
  };
}

async function portalOf(sysfs: string, directory: string): Promise<Portal | undefined> {
  const connection = (await namesIn(directory)).find((name) => /^connection\d+:0$/.test(name));
  if (connection === undefined) return undefined;
  const entry = `${sysfs}/class/iscsi_connection/${connection}`;
  const [host, port] = await Promise.all([text(`${entry}/persistent_address`), text(`${entry}/persistent_port`)]);
  return host && /^\d+$/.test(port) ? { host, port: Number(port) } : undefined;
}

/** The name of the target of the session that a disk is attached by; undefined for a disk that is attached otherwise. `directory` is the disk's. */
export async function targetAbove(sysfs: string, directory: string): Promise<string | undefined> {
  const session = /\/(session\d+)\//.exec(directory)?.[1];
  if (session === undefined) return undefined;
  return (await text(`${sysfs}/class/iscsi_session/${session}/targetname`)) || undefined;
}

function hostAbove(directory: string): string {
  for (let path = directory; path !== '/' && path !== '.'; path = dirname(path)) {
    if (/^host\d+$/.test(basename(path))) return basename(path);
  }
  return '';
}

async function text(path: string): Promise<string> {
  return (await textOf(path)) ?? '';
}
