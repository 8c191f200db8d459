/** Volumes that the configuration declares: they are found, never made and never deleted. */
import * as v from 'valibot';
import type { VolumeOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import { formatSize, parseSize } from '../../core/sizes.ts';
import type { AccessMode, Volume, VolumeContext, VolumeStatus } from '../../core/volume.ts';
import type { Attacher } from '../../node/attachers/attacher.ts';
import { refusal, requireCapabilities } from '../common/capability-check.ts';
import { fitsRange, requireRange } from '../common/capacity.ts';
import { pageOfIds } from '../common/paging.ts';
import { volumeId } from '../common/volume-id.ts';
import type { DriverEnvironment } from '../type.ts';
import { rulesOf } from './rules.ts';
import { requireContext, volumeContext } from './volume-context.ts';

const expectedSize = 'a size, such as 10Gi';

export const declaredVolume = v.object({
  /** The keys of a volume context, `node_attach_driver` first of all. */
  context: volumeContext,
  /** For orchestrators, which may ask for a volume of a size. */
  size: v.optional(
    v.pipe(
      v.union([v.string(), v.number()], expectedSize),
      v.check((size) => isSize(String(size)), expectedSize),
      v.transform((size) => parseSize(String(size))),
    ),
  ),
});

export type DeclaredVolume = v.InferOutput<typeof declaredVolume>;

/** Throws INVALID_ARGUMENT for a name or a context that cannot be one. */
export function declaredVolumes(
  declared: Readonly<Record<string, DeclaredVolume>>,
  driver: string,
  { maxIdBytes: maxBytes }: Pick<DriverEnvironment, 'maxIdBytes'>,
  modes: readonly AccessMode[] | undefined,
  attachers: Readonly<Record<string, Attacher>>,
): VolumeOperations {
  const volumes = new Map<string, Volume>();
  for (const [name, { context, size }] of Object.entries(declared)) {
    const id = volumeId({ name, parameters: {} }, { maxBytes });
    rulesOf(context, modes);
    const attacher = attachers[context.node_attach_driver ?? ''];
    if (attacher) requireContext(name, context, attacher);
    volumes.set(id, { id, capacityBytes: size ?? 0, context: { provisioner_driver: driver, ...context } });
  }
  const find = (id: string): Volume => {
    const found = volumes.get(id);
    if (found) return found;
    throw new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(id)} in the configuration`);
  };

  return {
    sources: new Set(),
    idFor: (spec) => volumeId(spec, { maxBytes }),
    async create(_call, spec) {
      const found = volumes.get(volumeId(spec, { maxBytes }));
      if (!found) {
        const known = [...volumes.keys()].slice(0, 10).join(', ');
        throw new CallError(
          'FAILED_PRECONDITION',
          `this connection makes no volumes, and none is declared as ${JSON.stringify(spec.name)}; declared are ${known}`,
        );
      }
      requireCapabilities(spec.capabilities, rulesOf(found.context, modes));
      requireRange(spec.capacity);
      if (spec.source) throw new CallError('INVALID_ARGUMENT', 'volumes of this connection are filled by others');
      if (found.capacityBytes > 0 && !fitsRange(found.capacityBytes, spec.capacity)) {
        throw new CallError(
          'ALREADY_EXISTS',
          `volume ${found.id} has ${formatSize(found.capacityBytes)}, which does not fit`,
        );
      }
      return found;
    },
    // What somebody else made is his to delete.
    delete: async () => {},
    async validate(_call, { volumeId: id, capabilities, context }) {
      const found = find(id);
      const why = refusal(capabilities, rulesOf(found.context, modes)) ?? strange(found.context, context);
      return why ? { confirmed: false, message: why } : { confirmed: true };
    },
    get: async (_call, id) => statusOf(find(id)),
    async list(_call, page) {
      const { ids, nextToken } = pageOfIds([...volumes.keys()], page);
      const entries = ids.map((id) => statusOf(find(id)));
      return nextToken === undefined ? { entries } : { entries, nextToken };
    },
  };
}

function strange(expected: VolumeContext, context: VolumeContext): string | undefined {
  const key = Object.keys(expected).find((one) => context[one] !== undefined && context[one] !== expected[one]);
  return key && `its context has ${key}=${expected[key]}, not ${context[key]}`;
}

function statusOf(volume: Volume): VolumeStatus {
  return { volume };
}

function isSize(size: string): boolean {
  try {
    return parseSize(size) > 0;
  } catch {
    return false;
  }
}
