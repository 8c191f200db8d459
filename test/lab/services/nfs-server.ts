import type { Guest } from '../guest.ts';

/** Starts the kernel's NFS server, for 3 and 4.2. With nfsdcld, which knows that there are no clients yet, it has no grace period. */
export async function startNfsServer(guest: Guest): Promise<void> {
  await guest.run(`set -e
    modprobe nfsd
    mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
    mount -t nfsd nfsd /proc/fs/nfsd
    mkdir -p /var/lib/nfs/nfsdcld /etc/exports.d
    setsid -f nfsdcld >/dev/null 2>&1 </dev/null
    rpcbind -w
    rpc.statd --no-notify
    rpc.nfsd -G 10 -L 10 8
    rpc.mountd`);
}

/** By folder, so that a server that starts anew gives the same handles for the same files. */
const identifiers = new Map<string, number>();

/** Makes a folder of the guest reachable for everyone, root included. */
export async function exportFolder(guest: Guest, folder: string): Promise<void> {
  const identifier = identifiers.get(folder) ?? identifiers.size + 1;
  identifiers.set(folder, identifier);
  const options = `rw,no_root_squash,no_subtree_check,insecure,fsid=${identifier}`;
  await guest.run(`set -e
    mkdir -p ${folder}
    echo '${folder} *(${options})' >/etc/exports.d/${identifier}.exports
    exportfs -ra`);
}
