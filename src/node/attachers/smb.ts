import { CallError } from '../../core/errors.ts';
import type { VolumeCapability } from '../../core/volume.ts';
import type { Mount } from '../mount-table.ts';
import { hostKey, pathKey, type ShareSource, shareSourceOf } from '../share-source.ts';
import type { MakeAttacher } from './attacher.ts';
import { shareAddress } from './share-address.ts';
import { smbAccount } from './smb-account.ts';

/**
 * A share of an SMB server, or a folder of it, from the context's `server` and `share` (`share/folder`). Whom the server is to take this node for
 * comes from secrets or mount flags, and goes to mount.cifs(8) by its environment: USER and PASSWD.
 */
export const smb: MakeAttacher = () => ({
  identityOf: ({ context }) => ({ ...shareAddress(context), fsType: 'cifs' }),
  async attach(call, { context, capability }) {
    const { server, share } = shareAddress(context);
    const host = hostKey(server);
    const path = pathKey(share.replaceAll('\\', '/'));
    if (path === '/') throw new CallError('INVALID_ARGUMENT', 'the volume context’s `share` names no share');
    const group = groupOption(capability);
    return {
      type: 'mount',
      // mount.cifs takes an IPv6 address as it stands, and none with brackets.
      source: `//${server}${path}`,
      fsType: 'cifs',
      options: [],
      share: {
        family: 'smb',
        host,
        shownBy: (mount) => isShown(mount, host, path),
        mounting(flags) {
          const { options, env } = smbAccount(flags, call.secrets, context);
          return { options: [...options, ...group], env };
        },
      },
    };
  },
});

function groupOption(capability: VolumeCapability): readonly string[] {
  if (capability.type !== 'mount' || !capability.mountGroup) return [];
  if (/^\w[\w.-]*$/.test(capability.mountGroup)) return [`gid=${capability.mountGroup}`];
  throw new CallError('INVALID_ARGUMENT', 'volume_mount_group is neither a number nor the name of a group');
}

/**
 * A folder of a share is mounted as a file system of its own, named as it was asked for, or, by kernels without DFS, as a folder of the whole
 * share, named as the share's first mount was.
 */
function isShown(mount: Mount, host: string, path: string): boolean {
  const found = shareSourceOf(mount);
  if (found?.family !== 'smb' || found.host !== host) return false;
  const shown = mount.root === '/' ? found.path : `/${shareName(found)}${pathKey(mount.root)}`;
  return withShareName(shown) === withShareName(path);
}

function shareName({ path }: Pick<ShareSource, 'path'>): string {
  return path.split('/')[1] ?? '';
}

/** Names of shares are the same in small letters and capitals; those of folders need not be. */
function withShareName(path: string): string {
  const name = shareName({ path });
  return `/${name.toLowerCase()}${path.slice(name.length + 1)}`;
}
