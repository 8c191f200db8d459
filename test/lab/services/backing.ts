/** What servers of block devices hand out. */
import type { Guest } from '../guest.ts';

/** Makes the pool `tank` of a disk. */
export async function createPool(guest: Guest, disk = '/dev/ubdb'): Promise<void> {
  await guest.run(`modprobe zfs && zpool create -f -O mountpoint=/tank -O atime=off tank ${disk}`);
}

/** A sparse zvol of the pool; gives its device. */
export async function createZvol(guest: Guest, name: string, bytes: number): Promise<string> {
  await guest.run(`zfs create -s -V ${bytes} tank/${name} && udevadm settle && test -b /dev/zvol/tank/${name}`);
  return `/dev/zvol/tank/${name}`;
}

/** A sparse file; gives its path. */
export async function createBackingFile(guest: Guest, name: string, bytes: number): Promise<string> {
  await guest.run(`mkdir -p /srv/luns && truncate -s ${bytes} /srv/luns/${name}`);
  return `/srv/luns/${name}`;
}

export async function growBacking(guest: Guest, path: string, bytes: number): Promise<void> {
  const zvol = /^\/dev\/zvol\/(.+)/.exec(path)?.[1];
  await guest.run(zvol ? `zfs set volsize=${bytes} ${zvol} && udevadm settle` : `truncate -s ${bytes} ${path}`);
}

export async function removeBacking(guest: Guest, path: string): Promise<void> {
  const zvol = /^\/dev\/zvol\/(.+)/.exec(path)?.[1];
  await guest.run(zvol ? `udevadm settle; zfs destroy ${zvol}` : `rm ${path}`);
}
