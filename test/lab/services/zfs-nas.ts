/** A guest that is storage and node in one: a pool, every server that volumes of it are shared by, and a connection for each driver. */
import type { Guest } from '../guest.ts';
import { createPool } from './backing.ts';
import { startInitiator } from './iscsi-target.ts';
import { startNfsServer } from './nfs-server.ts';
import { createNvmePort, startNvmeHost } from './nvme-subsystem.ts';
import { startSmbServer } from './smb-server.ts';

const account = { user: 'clerk', password: 'p,w4' };
export const smbSecrets = { mount_flags: `username=${account.user},password=p,,w4` };
/** What opens the guest by SSH. */
export const nasKey = '/root/.ssh/csi';

/** Makes the pool, a key that opens the guest to itself, and starts all servers and clients. */
export async function startZfsNas(guest: Guest): Promise<void> {
  await createPool(guest);
  await guest.run(`set -e
    ssh-keygen -q -t ed25519 -N '' -f ${nasKey}
    cat ${nasKey}.pub >>/root/.ssh/authorized_keys
    awk '{ print "${guest.address}", $1, $2 }' /etc/ssh/ssh_host_*_key.pub >${nasKey}.hosts
    mkdir -p /var/target/pr /var/target/alua /etc/target
    sync`);
  await serve(guest);
}

/** After it was without power: what the units of ZFS and of the servers do when a host comes up. */
export async function resumeZfsNas(guest: Guest): Promise<void> {
  await guest.run(`modprobe zfs && zpool import -c /etc/zfs/zpool.cache -aN && zfs mount -a && udevadm settle`);
  await serve(guest);
  await guest.run(`zfs share -a; targetctl restore; test ! -e ${savedSubsystems} || sh -e ${savedSubsystems}`);
}

async function serve(guest: Guest): Promise<void> {
  await guest.run('modprobe iscsi_target_mod && modprobe target_core_iblock && modprobe nvmet');
  await startNfsServer(guest);
  const usershares = '/var/lib/samba/usershares';
  await guest.run(`mkdir -p ${usershares} && chmod 1770 ${usershares}`);
  await startSmbServer(guest, {}, account, [`usershare path = ${usershares}`, 'usershare max shares = 1000']);
  await startInitiator(guest);
  await startNvmeHost(guest);
  await createNvmePort(guest, 1, guest.address, 4420);
}

const savedSubsystems = '/etc/nvmet.saved';

/** For `saveCommand`: what `nvmetcli save` does, which not every system has. */
export const saveSubsystems = '/usr/local/sbin/save-subsystems';

export async function installSaveSubsystems(guest: Guest): Promise<void> {
  const script = `#!/bin/bash
set -e
cd /sys/kernel/config/nvmet
{
  echo cd $PWD
  for s in subsystems/*/namespaces/1/device_path; do
    [ -e "$s" ] || continue
    s=\${s%/namespaces/1/device_path}
    echo "mkdir $s $s/namespaces/1"
    for f in attr_allow_any_host namespaces/1/device_path namespaces/1/device_uuid namespaces/1/enable; do
      echo "echo '$(cat "$s/$f")' >$s/$f"
    done
  done
  for l in ports/*/subsystems/*; do [ ! -L "$l" ] || echo "ln -s $PWD/subsystems/\${l##*/} $l"; done
} >${savedSubsystems}.new
sync ${savedSubsystems}.new
mv ${savedSubsystems}.new ${savedSubsystems}
sync /etc
`;
  await guest.run(`cat >${saveSubsystems} && chmod +x ${saveSubsystems}`, { input: script });
}

export type NasDriver = 'nfs' | 'smb' | 'iscsi' | 'nvmeof' | 'dataset' | 'zvol';
export const nasDrivers: readonly NasDriver[] = ['nfs', 'smb', 'iscsi', 'nvmeof', 'dataset', 'zvol'];

export interface ConnectionOptions {
  /** Where its datasets are. Default: `tank/<driver>`. */
  readonly root?: string;
  /** More lines of the block `zfs`, each with its two spaces. */
  readonly zfs?: readonly string[];
  readonly host?: string;
  readonly port?: number;
  /** Of `zfs-generic-iscsi`. */
  readonly shareStrategy?: 'targetCli' | 'configfs';
  /** Of `zfs-generic-nvmeof`. */
  readonly saveCommand?: string;
}

/** The text of a connection. */
export function nasConnection(guest: Guest, driver: NasDriver, options: ConnectionOptions = {}): string {
  const { root = `tank/${driver}`, zfs = [], host = guest.address, port = 22, shareStrategy = 'configfs' } = options;
  const saveCommand = options.saveCommand ? `  saveCommand: [${options.saveCommand}]\n` : '';
  const isLocal = driver === 'dataset' || driver === 'zvol';
  const { address } = guest;
  const ssh = `sshConnection:\n  host: ${host}\n  port: ${port}\n  username: root\n  privateKeyFile: ${nasKey}\n  readyTimeout: 5000\n  keepaliveInterval: 2000\n`;
  const shares: Readonly<Record<NasDriver, string>> = {
    nfs: `nfs:
  shareHost: ${address}
  shareStrategySetDatasetProperties: { properties: { sharenfs: "rw,no_root_squash,no_subtree_check,insecure" } }
`,
    smb: `smb:
  shareHost: ${address}
  shareStrategySetDatasetProperties: { properties: { sharesmb: "on" } }
`,
    iscsi: `iscsi:
  targetPortal: ${address}:3260
  namePrefix: csi-
  shareStrategy: ${shareStrategy}
  shareStrategyTargetCli:
    basename: iqn.2026-01.org.lab
    tpg: { attributes: { authentication: 0, generate_node_acls: 1, cache_dynamic_acls: 1, demo_mode_write_protect: 0 } }
`,
    nvmeof: `nvmeof:
  transport: tcp://${address}:4420
  shareStrategy: configfs
  shareStrategyNvmetCli: { basename: nqn.2026-01.org.lab, ports: [1], subsystem: { attributes: { allow_any_host: 1 } } }
${saveCommand}`,
    dataset: '',
    zvol: '',
  };
  return `driver: zfs-${isLocal ? 'local' : 'generic'}-${driver}
${isLocal ? '' : `${ssh}`}zfs:
  datasetParentName: ${root}/v
  detachedSnapshotsDatasetParentName: ${root}/s
  datasetEnableQuotas: true
  datasetPermissionsMode: "0777"
${zfs.map((line) => `  ${line}\n`).join('')}${shares[driver]}`;
}

/** A proxy whose connections are all of these drivers, by their names. */
export function nasProxy(guest: Guest, drivers: readonly NasDriver[] = nasDrivers) {
  return {
    config: 'driver: proxy\nproxy:\n  configFolder: /run/switchboard/main/connections\n',
    files: Object.fromEntries(drivers.map((one) => [`connections/${one}.yaml`, nasConnection(guest, one)])),
  };
}

/** One line for everything that is there of any volume: datasets, snapshots, shares, targets, subsystems. Not what waits for the NFS server to let go. */
export async function storedThings(guest: Guest): Promise<readonly string[]> {
  const listing = await guest.run(`
    zfs list -H -o name -t all -r tank | grep -E '/[vs]/|@' | grep -v /trash: | sed 's/^/zfs /'
    exportfs -s | awk '{ print "export", $1 }' | grep tank
    ls /var/lib/samba/usershares 2>/dev/null | sed 's/^/usershare /'
    cd /sys/kernel/config
    ls target/iscsi 2>/dev/null | grep ^iqn | sed 's/^/target /'
    ls -d target/core/*/* 2>/dev/null | grep -v -e alua -e hba_ -e '/default' -e 'target/core/alua' | sed 's/^/backstore /'
    ls nvmet/subsystems | sed 's/^/subsystem /' | grep -v discovery
    zfs list -H -o userrefs,name -t snapshot -r tank | grep -v -e '^0' -e '^-' | sed 's/^/hold /'
    true`);
  return listing.split('\n').filter(Boolean);
}
