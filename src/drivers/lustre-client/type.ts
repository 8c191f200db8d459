/** `driver: lustre-client`: volumes are folders on a Lustre file system. */
import { shareDriverType } from '../directory/share-driver.ts';

export const lustreClient = shareDriverType({
  name: 'lustre-client',
  summary: 'directories on a Lustre file system',
  block: 'lustre',
  attachDriver: 'lustre',
  fsTypes: ['lustre'],
  example: { shareHost: 'mgs@tcp', shareBasePath: '/scratch/csi', controllerBasePath: '/mnt/csi' },
  shareOf: (path) => path,
  sourceOf: (host, share) => `${host}:${share}`,
});
