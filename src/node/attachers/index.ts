import type { MakeAttacher } from './attacher.ts';
import { hostpath } from './hostpath.ts';
import { iscsi } from './iscsi/iscsi.ts';
import { nvmeof } from './nvmeof/nvmeof.ts';

/** All attachers by the `node_attach_driver` of the volume context. */
export const attachers: Readonly<Record<string, MakeAttacher>> = {
  bind: hostpath,
  hostpath,
  iscsi,
  nvmeof,
};
