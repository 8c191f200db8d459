/** The context of a volume that the configuration declares: which keys there are for its attach driver, and whether what is needed is there. */
import * as v from 'valibot';
import { secret } from '../../config/secret.ts';
import { CallError } from '../../core/errors.ts';
import type { VolumeContext } from '../../core/volume.ts';
import type { Attacher } from '../../node/attachers/attacher.ts';
import { formatOptions } from '../../node/file-systems/format-options.ts';
import { checkedPath } from '../../node/paths.ts';

const share = ['server', 'share'] as const;

/** What the attachers read, by `node_attach_driver`. ObjectiveFS takes variables of its environment besides: `env.<NAME>`. */
const keysOf: Readonly<Record<string, readonly string[]>> = {
  nfs: share,
  smb: share,
  lustre: share,
  iscsi: ['portal', 'portals', 'iqn', 'lun', 'interface', formatOptions],
  nvmeof: ['transport', 'transports', 'nqn', 'nsid', 'uuid', 'nguid', formatOptions],
  hostpath: ['path', formatOptions],
  bind: ['path', formatOptions],
  'zfs-local': ['zfs_asset_name', formatOptions],
  oneclient: ['server', 'space_names', 'space_ids', 'token'],
  objectivefs: ['filesystem', 'object_store'],
};

/** Of all volumes: what attaches them, and whose secrets they take. */
const common = ['node_attach_driver', 'provisioner_driver', 'provisioner_driver_instance_id'] as const;

const text = v.pipe(v.union([v.string(), v.number(), v.boolean()], 'a text'), v.transform(String));
const secretText = v.optional(secret(text));
const variable = /^env\.\w+$/;

/** Keys that no attacher reads are pointed out, and left out. */
export const volumeContext = v.lazy(schemaFor);

function schemaFor(context: unknown): v.GenericSchema<unknown, VolumeContext> {
  const anything = v.record(v.string(), text);
  if (typeof context !== 'object' || context === null || !('node_attach_driver' in context)) return anything;
  const kind = String(context.node_attach_driver);
  const known = Object.hasOwn(keysOf, kind) ? keysOf[kind] : undefined;
  if (!known) return anything;
  const variables = kind === 'objectivefs' ? Object.keys(context).filter((key) => variable.test(key)) : [];
  return v.object({
    ...Object.fromEntries([...common, ...known].map((key) => [key, v.optional(text)])),
    ...Object.fromEntries([...variables, ...known.filter((key) => key === 'token')].map((key) => [key, secretText])),
  }) as unknown as v.GenericSchema<unknown, VolumeContext>;
}

/** Attachers without an identity are of paths of the node. Throws INVALID_ARGUMENT, naming the volume, for a context that lacks something or has it in a form that cannot be. */
export function requireContext(name: string, context: VolumeContext, attacher: Attacher): void {
  try {
    if (attacher.identityOf) attacher.identityOf({ context, publishContext: {} });
    else checkedPath(context.path ?? '', 'the volume context’s path');
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    throw new CallError(error.code, `volume ${JSON.stringify(name)}: ${error.message}`, { cause: error });
  }
}
