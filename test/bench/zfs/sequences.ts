/**
 * The commands by which democratic-csi's zfs-generic-nfs does what is measured, as it was seen to send them: each is a session of its own on one
 * connection, begun when the one before has ended. The ACL is left out, which this ZFS does not have, and so are its failures.
 */
import { parent } from './storage.ts';
import { shareOptions, volumeBytes } from './subject.ts';

const get = (properties: string, name: string) =>
  `/sbin/zfs get -Hp -o name,property,value,received,source ${properties} ${name}`;

const own = 'democratic-csi:';
const marks = [
  `${own}managed_resource=true`,
  `${own}volume_context_provisioner_driver=zfs-generic-nfs`,
  `${own}volume_context_provisioner_instance_id=bench`,
];
const listed = [
  'name,mountpoint,refquota,avail,used',
  `${own}csi_volume_name,${own}csi_volume_content_source_type,${own}csi_volume_content_source_id,volsize`,
  `${own}managed_resource,${own}csi_share_volume_context,${own}provision_success`,
  `${own}volume_context_provisioner_instance_id,${own}volume_context_provisioner_driver`,
].join(',');

export const sequences = {
  create(volume: string, server: string): readonly string[] {
    const name = `${parent}/${volume}`;
    const path = `/${name}`;
    const options = [`${own}csi_volume_name=${volume}`, ...marks].map((one) => `-o ${one}`).join(' ');
    const context = JSON.stringify({ node_attach_driver: 'nfs', server, share: path });
    return [
      get('volsize,refquota', name),
      `/sbin/zfs create -p ${options} ${name}`,
      `/sbin/zfs set refquota=${volumeBytes} ${name}`,
      get(
        `mountpoint,refquota,compression,${own}csi_volume_name,${own}csi_volume_content_source_type,${own}csi_volume_content_source_id`,
        name,
      ),
      `chmod 0777 ${path}`,
      `chown 1000:1000 ${path}`,
      `/sbin/zfs set sharenfs=${shareOptions} ${name}`,
      get('mountpoint', name),
      `/sbin/zfs set '${own}csi_share_volume_context=${context}' ${name}`,
      `/sbin/zfs set ${own}provision_success=true ${name}`,
    ];
  },
  remove(volume: string): readonly string[] {
    const name = `${parent}/${volume}`;
    return [
      get(`mountpoint,origin,refquota,compression,${own}csi_volume_name`, name),
      `/sbin/zfs inherit sharenfs ${name}`,
      `/sbin/zfs destroy -r -f -p ${name}`,
    ];
  },
  capacity: [`/sbin/zfs create -p ${parent}`, get('avail', parent)],
  list: [`/sbin/zfs list -r -Hp -t filesystem -o ${listed} ${parent}`],
} as const;
