/** The table of all drivers: what `driver:` in a configuration file can be. */
import { localHostpath } from './local-hostpath/type.ts';
import { lustreClient } from './lustre-client/type.ts';
import { nfsClient } from './nfs-client/type.ts';
import { nodeManual } from './node-manual/type.ts';
import { smbClient } from './smb-client/type.ts';
import type { DriverType } from './type.ts';
import {
  zfsGenericIscsi,
  zfsGenericNfs,
  zfsGenericNvmeof,
  zfsGenericSmb,
  zfsLocalDataset,
  zfsLocalZvol,
} from './zfs/rows.ts';
import { zfsLocalEphemeralInline } from './zfs-local-ephemeral-inline/type.ts';

export const driverTypes: readonly DriverType[] = [
  localHostpath,
  nfsClient,
  smbClient,
  lustreClient,
  nodeManual,
  zfsGenericNfs,
  zfsGenericSmb,
  zfsGenericIscsi,
  zfsGenericNvmeof,
  zfsLocalDataset,
  zfsLocalZvol,
  zfsLocalEphemeralInline,
];

/** The row of this name, or undefined. */
export function driverType(name: string): DriverType | undefined {
  return driverTypes.find((type) => type.name === name);
}
