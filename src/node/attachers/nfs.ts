import { isIP, isIPv6 } from 'node:net';
import { secretFlags } from '../node-secret.ts';
import { addressOf, hostKey, pathKey, shareSourceOf } from '../share-source.ts';
import type { MakeAttacher } from './attacher.ts';
import { otherNames } from './other-names.ts';
import { shareAddress } from './share-address.ts';

/**
 * An export of an NFS server, from the context's `server` and `share`. The version is left to mount.nfs(8) and the server, unless a mount flag
 * such as `vers=4.2` names one.
 */
export const nfs: MakeAttacher = () => ({
  identityOf: ({ context }) => ({ ...shareAddress(context), fsType: 'nfs' }),
  async attach(call, { context, table }) {
    const { server, share } = shareAddress(context);
    const host = hostKey(server);
    const path = pathKey(share);
    const secret = secretFlags(call.secrets, context);
    const names = isIP(host) ? new Set([host]) : await otherNames(call, table, host);
    return {
      type: 'mount',
      source: `${isIPv6(server) ? `[${server}]` : server}:${share}`,
      fsType: 'nfs',
      options: [],
      share: {
        family: 'nfs',
        host,
        shownBy(mount) {
          const found = shareSourceOf(mount);
          if (found?.family !== 'nfs' || found.path !== path || mount.root !== '/') return false;
          // Mounts of one server share what the kernel knows of it, and with that the name that the first of them was mounted by.
          return found.host === host || names.has(addressOf(mount.superOptions));
        },
        mounting: (flags) => ({ options: withOneTry([...flags, ...secret]) }),
      },
    };
  },
});

/**
 * By default mount.nfs(8) tries for two minutes to reach a server that refuses; whoever calls knows better when to try again. In the background
 * it would go on when nobody waits for it any more.
 */
function withOneTry(flags: readonly string[]): readonly string[] {
  const options = flags.filter((flag) => flag !== 'bg');
  return options.some((option) => option.startsWith('retry=')) ? options : [...options, 'retry=0'];
}
