import type { MakeAttacher } from './attacher.ts';
import { hostpath } from './hostpath.ts';
import { iscsi } from './iscsi/iscsi.ts';
import { lustre } from './lustre.ts';
import { nfs } from './nfs.ts';
import { nvmeof } from './nvmeof/nvmeof.ts';
import { objectivefs } from './objectivefs.ts';
import { oneclient } from './oneclient.ts';
import { smb } from './smb.ts';
import { zfsLocal } from './zfs-local.ts';

/** All attachers by the `node_attach_driver` of the volume context. */
export const attachers: Readonly<Record<string, MakeAttacher>> = {
  bind: hostpath,
  hostpath,
  iscsi,
  lustre,
  nfs,
  nvmeof,
  objectivefs,
  oneclient,
  smb,
  'zfs-local': zfsLocal,
};
