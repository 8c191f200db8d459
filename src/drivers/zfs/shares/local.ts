import type { Share } from '../share.ts';

/** Used on the very host: there is nothing to share. */
export const localShare: Share = {
  properties: {},
  wants: [],
  byProperties: ({ name }) => ({ context: { node_attach_driver: 'zfs-local', zfs_asset_name: name } }),
  publish: async (_call, _request, { name }) => ({
    context: { node_attach_driver: 'zfs-local', zfs_asset_name: name },
  }),
};
