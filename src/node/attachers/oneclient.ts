import { CallError } from '../../core/errors.ts';
import type { VolumeContext } from '../../core/volume.ts';
import { nodeSecret, secretFlags } from '../node-secret.ts';
import type { Identity, MakeAttacher } from './attacher.ts';

/**
 * Spaces of Onedata, mounted by oneclient(1): the context's `server`, and `space_names` and `space_ids` (lists with commas; without either, all spaces).
 * The access token is the secret `token`, or the context's. Mount flags that begin with a dash are oneclient's own; others are FUSE's.
 */
export const oneclient: MakeAttacher = (tools) => ({
  identityOf: ({ context }) => identityOf(context),
  async attach(call, { context }) {
    const { server, ...spaces } = identityOf(context);
    const token = nodeSecret(call.secrets, context, 'token') || context.token;
    const secret = secretFlags(call.secrets, context);
    const chosen = [
      ...listed(spaces.names).flatMap((name) => ['--space', name]),
      ...listed(spaces.ids).flatMap((id) => ['--space-id', id]),
    ];
    return {
      type: 'command',
      source: `oneclient://${server}/${[...listed(spaces.names), ...listed(spaces.ids)].join(',')}`,
      fsType: 'fuse.oneclient',
      // All its mounts have one source.
      shownBy: (mount) => /^fuse(\.oneclient)?$/.test(mount.fsType) && mount.root === '/',
      mounting: (place, options) => ({
        program: 'oneclient',
        args: ['-H', String(server), ...argumentsOf([...options, ...secret]), ...chosen, place],
        env: token ? { ONECLIENT_ACCESS_TOKEN: token } : {},
        timeoutMs: tools.limits.mount,
      }),
    };
  },
});

function identityOf(context: VolumeContext): Identity {
  const { server = '' } = context;
  if (!/^[A-Za-z0-9[][A-Za-z0-9.:[\]-]*$/.test(server)) {
    throw new CallError('INVALID_ARGUMENT', 'the volume context’s `server` is not the host of a Oneprovider');
  }
  const spaces = (key: string) =>
    listed(context[key] ?? '')
      .toSorted()
      .join(',');
  return { server, names: spaces('space_names'), ids: spaces('space_ids') };
}

function listed(text = ''): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Throws INVALID_ARGUMENT for flags that have the token in them: arguments are seen by everybody. */
function argumentsOf(flags: readonly string[]): readonly string[] {
  const own = flags.filter((flag) => flag.startsWith('-') && flag !== '-o');
  const fuse = flags.filter((flag) => !flag.startsWith('-'));
  if (own.some((flag) => /^(-[^-]*t|--token)/.test(flag))) {
    throw new CallError('INVALID_ARGUMENT', 'the mount flags have a token: it belongs to the secret `token`');
  }
  return [...own, ...(fuse.length > 0 ? ['-o', fuse.join(',')] : [])];
}
