/** Volumes, snapshots and shares exactly as democratic-csi lays them out, command by command. */
import type { Guest } from '../guest.ts';
import type { NasDriver } from './zfs-nas.ts';

const gib = 2 ** 30;
export const peerRoot = (driver: NasDriver) => `tank/k8s/${driver}`;

/** What nodes need of a volume, as it is kept with it. */
export function peerContext(guest: Guest, driver: NasDriver, id: string): Readonly<Record<string, string | number>> {
  const { address } = guest;
  switch (driver) {
    case 'nfs':
      return { node_attach_driver: 'nfs', server: address, share: `/${peerRoot(driver)}/v/${id}` };
    case 'smb':
      return {
        node_attach_driver: 'smb',
        server: address,
        share: `${peerRoot(driver)}/v/${id}`.replaceAll(/[/-]/g, '_'),
      };
    case 'iscsi':
      return {
        node_attach_driver: 'iscsi',
        portal: `${address}:3260`,
        portals: '',
        interface: '',
        iqn: `iqn.2026-01.org.lab:csi-${id}`,
        lun: 0,
      };
    case 'nvmeof':
      return {
        node_attach_driver: 'nvmeof',
        transport: `tcp://${address}:4420`,
        transports: '',
        nqn: `nqn.2026-01.org.lab:${id}`,
        nsid: 1,
      };
    default:
      return { node_attach_driver: 'zfs-local', zfs_asset_name: `${peerRoot(driver)}/v/${id}` };
  }
}

const isZvol = (driver: NasDriver) => driver === 'iscsi' || driver === 'nvmeof' || driver === 'zvol';
const driverName = (driver: NasDriver) =>
  `zfs-${driver === 'dataset' || driver === 'zvol' ? 'local' : 'generic'}-${driver}`;

const marks = (driver: NasDriver, id: string, source?: readonly [type: string, id: string]) => [
  `democratic-csi:csi_volume_name=${id}`,
  'democratic-csi:managed_resource=true',
  `democratic-csi:volume_context_provisioner_driver=${driverName(driver)}`,
  ...(isZvol(driver) ? ['refreservation=0'] : []),
  ...(source
    ? [
        `democratic-csi:csi_volume_content_source_type=${source[0]}`,
        `democratic-csi:csi_volume_content_source_id=${source[1]}`,
      ]
    : []),
];

const options = (values: readonly string[]) => values.map((value) => `-o ${value}`).join(' ');

/** pvc-aaaa with two snapshots, a clone and a copy of the first of them, and a clone of the volume itself. `then` is in the snapshots, `now` in the volume. */
export async function layPeerVolumes(guest: Guest, driver: NasDriver): Promise<void> {
  const [v, s] = [`${peerRoot(driver)}/v`, `${peerRoot(driver)}/s`];
  const a = `${v}/pvc-aaaa`;
  const write = (text: string) =>
    isZvol(driver)
      ? `mount /dev/zvol/${a} /mnt; echo ${text} >/mnt/data; umount /mnt`
      : `echo ${text} >/${a}/data; chmod 666 /${a}/data; sync -f /${a}/data`;
  const made = (id: string) => [
    isZvol(driver) ? `zfs set volsize=${gib} ${v}/${id}` : `zfs set refquota=${gib} ${v}/${id}`,
    ...(isZvol(driver) ? ['udevadm settle'] : [`chmod 0777 /${v}/${id}`]),
    ...share(driver, id),
    `zfs set 'democratic-csi:csi_share_volume_context=${JSON.stringify(peerContext(guest, driver, id))}' ${v}/${id}`,
    `zfs set democratic-csi:provision_success=true ${v}/${id}`,
  ];
  const snapshotMarks = (name: string) => [
    `democratic-csi:csi_snapshot_name=${name}`,
    'democratic-csi:csi_snapshot_source_volume_id=pvc-aaaa',
    'democratic-csi:managed_resource=true',
  ];
  const lines = [
    'set -e',
    `zfs create -p ${options(marks(driver, 'pvc-aaaa'))} ${isZvol(driver) ? `-o volblocksize=16K -V ${gib}` : ''} ${a}`,
    ...(isZvol(driver) ? ['udevadm settle', `mkfs.ext4 -q /dev/zvol/${a}`] : []),
    write('then'),
    `zfs snapshot ${options(snapshotMarks('snap-1111'))} ${a}@snap-1111`,
    `zfs set democratic-csi:provision_success=true ${a}@snap-1111`,
    `zfs create -p ${s}/pvc-aaaa`,
    `zfs snapshot ${a}@volume-source-for-snapshot-snap-2222`,
    `zfs send ${a}@volume-source-for-snapshot-snap-2222 | zfs receive ${s}/pvc-aaaa/snap-2222`,
    `zfs set ${snapshotMarks('snap-2222').join(' ')} ${s}/pvc-aaaa/snap-2222`,
    `zfs destroy -r -f -p -d ${s}/pvc-aaaa/snap-2222@volume-source-for-snapshot-snap-2222`,
    `zfs destroy -r -f -p -d ${a}@volume-source-for-snapshot-snap-2222`,
    `zfs set democratic-csi:provision_success=true ${s}/pvc-aaaa/snap-2222`,
    write('now'),
    // The target takes the device for itself: what is written is written before.
    ...made('pvc-aaaa'),
    `zfs clone ${options(marks(driver, 'pvc-bbbb', ['snapshot', 'pvc-aaaa@snap-1111']))} ${a}@snap-1111 ${v}/pvc-bbbb`,
    ...made('pvc-bbbb'),
    `zfs send ${a}@snap-1111 | zfs receive ${v}/pvc-cccc`,
    `zfs set ${marks(driver, 'pvc-cccc', ['snapshot', 'pvc-aaaa@snap-1111']).join(' ')} ${v}/pvc-cccc`,
    `zfs destroy -f -p ${v}/pvc-cccc@%`,
    ...made('pvc-cccc'),
    `zfs snapshot ${s}/pvc-aaaa/snap-2222@volume-source-for-volume-pvc-dddd`,
    `zfs clone ${options(marks(driver, 'pvc-dddd', ['snapshot', 'pvc-aaaa/snap-2222']))} ${s}/pvc-aaaa/snap-2222@volume-source-for-volume-pvc-dddd ${v}/pvc-dddd`,
    `zfs destroy -r -f -p -d ${s}/pvc-aaaa/snap-2222@volume-source-for-volume-pvc-dddd`,
    ...made('pvc-dddd'),
    `zfs snapshot ${a}@volume-source-for-volume-pvc-eeee`,
    `zfs clone ${options(marks(driver, 'pvc-eeee', ['volume', 'pvc-aaaa']))} ${a}@volume-source-for-volume-pvc-eeee ${v}/pvc-eeee`,
    ...made('pvc-eeee'),
    // One that was interrupted before it was shared.
    `zfs create -p ${options(marks(driver, 'pvc-half'))} ${isZvol(driver) ? `-o volblocksize=16K -V ${gib}` : `-o refquota=${gib}`} ${v}/pvc-half`,
  ];
  await guest.run(lines.join('\n'), { timeoutMs: 120_000 });
}

function share(driver: NasDriver, id: string): readonly string[] {
  const dataset = `${peerRoot(driver)}/v/${id}`;
  switch (driver) {
    case 'nfs':
      return [`zfs set sharenfs=rw,no_root_squash,no_subtree_check,insecure ${dataset}`];
    case 'smb':
      return [`zfs set sharesmb=on ${dataset}`];
    case 'iscsi':
      return [
        `targetcli >/dev/null <<'EOT'
# create target
cd /iscsi
create iqn.2026-01.org.lab:csi-${id}

# setup tpg
cd /iscsi/iqn.2026-01.org.lab:csi-${id}/tpg1

set attribute authentication=0
set attribute generate_node_acls=1
set attribute cache_dynamic_acls=1
set attribute demo_mode_write_protect=0

# create extent
cd /backstores/block
create csi-${id} /dev/zvol/${dataset}

# add extent to target/tpg
cd /iscsi/iqn.2026-01.org.lab:csi-${id}/tpg1/luns
create /backstores/block/csi-${id}
EOT`,
        `zfs set democratic-csi:iscsi_assets_name=csi-${id} ${dataset}`,
      ];
    case 'nvmeof': {
      // What nvmetcli does with the commands that it is given.
      const subsystem = `/sys/kernel/config/nvmet/subsystems/nqn.2026-01.org.lab:${id}`;
      return [
        `mkdir ${subsystem}; echo 1 >${subsystem}/attr_allow_any_host; mkdir ${subsystem}/namespaces/1`,
        `printf %s /dev/zvol/${dataset} >${subsystem}/namespaces/1/device_path; echo 1 >${subsystem}/namespaces/1/enable`,
        `ln -s ${subsystem} /sys/kernel/config/nvmet/ports/1/subsystems/`,
        `zfs set democratic-csi:nvmeof_assets_name=${id} ${dataset}`,
      ];
    }
    default:
      return [];
  }
}
