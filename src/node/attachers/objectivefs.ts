import type { Secrets } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { VolumeContext } from '../../core/volume.ts';
import { nodeSecret, secretFlags } from '../node-secret.ts';
import type { MakeAttacher } from './attacher.ts';

/** Characters of a license. What follows in OBJECTIVEFS_LICENSE is an admin key, and whoever has one "is not permitted to mount" (ObjectiveFS Admin Key). */
const licenseLength = 24;

const prefix = 'env.';

/**
 * An ObjectiveFS file system, mounted by mount.objectivefs: the context's `filesystem`. Its environment is the secrets `env.<NAME>`, and the context's,
 * which win. The object store is in it (`OBJECTSTORE`), in the context (`object_store`), or before the name (`minio://pool/volume`).
 */
export const objectivefs: MakeAttacher = (tools) => ({
  identityOf: ({ context }) => ({ filesystem: nameOf(context) }),
  async attach(call, { context }) {
    const filesystem = nameOf(context);
    const env = environmentOf(call.secrets, context);
    const inName = /^[a-z0-9-]+:\/\//i.exec(filesystem)?.[0];
    const store = env.OBJECTSTORE || context.object_store || inName;
    if (!store) {
      throw new CallError(
        'FAILED_PRECONDITION',
        `the object store of ${filesystem} is not known: set OBJECTSTORE by the secret or the context’s env.OBJECTSTORE`,
      );
    }
    const sources = new Set([filesystem, inName ? filesystem : `${store}${filesystem}`]);
    const secret = secretFlags(call.secrets, context);
    return {
      type: 'command',
      source: [...sources].at(-1) ?? filesystem,
      fsType: 'fuse.objectivefs',
      shownBy: (mount) => sources.has(mount.source) && mount.root === '/',
      mounting: (place, options) => {
        const all = [...options, ...secret];
        return {
          program: 'mount.objectivefs',
          args: [...(all.length > 0 ? ['-o', all.join(',')] : []), filesystem, place],
          env: { ...env, OBJECTSTORE: store },
          timeoutMs: tools.limits.mount,
        };
      },
    };
  },
});

function nameOf({ filesystem = '' }: VolumeContext): string {
  if (/^[A-Za-z0-9][\w./:-]*$/.test(filesystem)) return filesystem;
  throw new CallError(
    'INVALID_ARGUMENT',
    'the volume context’s `filesystem` is not the name of an ObjectiveFS file system',
  );
}

function environmentOf(secrets: Secrets, context: VolumeContext): Readonly<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const key of Object.keys(secrets)) {
    const name = /(?:^|\/)env\.(\w+)$/.exec(key)?.[1];
    const value = name && nodeSecret(secrets, context, `${prefix}${name}`);
    if (name && value !== undefined) env[name] = value;
  }
  for (const [key, value] of Object.entries(context)) {
    if (/^env\.\w+$/.test(key)) env[key.slice(prefix.length)] = value;
  }
  // What decides which program runs, and with what in it, is not a volume's business.
  for (const name of Object.keys(env)) if (/^(PATH|LD_.*|IFS|BASH_ENV|ENV)$/.test(name)) delete env[name];
  if (env.OBJECTIVEFS_LICENSE) env.OBJECTIVEFS_LICENSE = env.OBJECTIVEFS_LICENSE.slice(0, licenseLength);
  return env;
}
