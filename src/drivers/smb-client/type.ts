/** `driver: smb-client`: volumes are folders on an SMB share. */
import { pathOfShare } from '../directory/options.ts';
import { shareDriverType } from '../directory/share-driver.ts';

export const smbClient = shareDriverType({
  name: 'smb-client',
  summary: 'directories on an SMB share',
  block: 'smb',
  attachDriver: 'smb',
  fsTypes: ['cifs'],
  // `share/folder`, with or without a slash before it.
  entries: { shareBasePath: pathOfShare },
  example: { shareHost: 'nas', shareBasePath: 'csi', controllerBasePath: '/mnt/csi' },
  mountGroup: true,
  // With folders kept open by the client, Samba lets a rename of the folder above them wait for up to 35 seconds.
  mountOptions: ['nohandlecache'],
  patienceMs: 60_000,
  shareOf: (path) => path.replace(/^\/+/, ''),
  sourceOf: (host, share) => `//${host}/${share}`,
});
