/** `driver: nfs-client`: volumes are folders on an NFS share. */
import { shareDriverType } from '../directory/share-driver.ts';

export const nfsClient = shareDriverType({
  name: 'nfs-client',
  summary: 'directories on an NFS share',
  block: 'nfs',
  attachDriver: 'nfs',
  fsTypes: ['nfs'],
  example: { shareHost: 'nas', shareBasePath: '/srv/csi', controllerBasePath: '/mnt/csi' },
  shareOf: (path) => path,
  sourceOf: (host, share) => `${host}:${share}`,
});
