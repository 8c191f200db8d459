import { secretFlags } from '../node-secret.ts';
import { hostKey, pathKey, shareSourceOf } from '../share-source.ts';
import type { MakeAttacher } from './attacher.ts';
import { shareAddress } from './share-address.ts';

/** Network ids of the management servers, such as `10.0.0.1@tcp,10.1.0.1@o2ib:10.0.0.2@tcp`: mount.lustre(8). */
const networkIds = /^[\w[][\w.:,@[\]-]*$/;

/** A Lustre file system, or a folder of it, from the context's `server` and `share` (`/fsname/folder`). */
export const lustre: MakeAttacher = () => ({
  identityOf: ({ context }) => ({ ...shareAddress(context, networkIds), fsType: 'lustre' }),
  async attach(call, { context }) {
    const { server, share } = shareAddress(context, networkIds);
    const host = hostKey(server);
    const path = pathKey(share);
    const secret = secretFlags(call.secrets, context);
    return {
      type: 'mount',
      source: `${server}:${path}`,
      fsType: 'lustre',
      options: [],
      share: {
        family: 'lustre',
        host,
        shownBy(mount) {
          const found = shareSourceOf(mount);
          return found?.family === 'lustre' && found.host === host && found.path === path && mount.root === '/';
        },
        mounting: (flags) => ({ options: [...flags, ...secret] }),
      },
    };
  },
});
