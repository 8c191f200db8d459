/** A volume as Nomad's registry has it: the same facts as a volume file and as a request of its API. */
import type { Pairs } from '../pairs.ts';
import { hclAttributes, hclBlock, hclList, hclMap, hclString } from './nomad-hcl.ts';

export interface NomadVolume {
  readonly id: string;
  /** What CreateVolume is called with. */
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly pluginId: string;
  /** Bytes. */
  readonly capacityMin?: number | undefined;
  readonly capacityMax?: number | undefined;
  /** Nomad's spelling: `single-node-writer`. */
  readonly accessMode: string;
  readonly attachmentMode: 'file-system' | 'block-device';
  readonly fsType?: string | undefined;
  readonly mountFlags: readonly string[];
  readonly parameters: Pairs;
  /** Names only: what is secret is not written to files. */
  readonly secrets: readonly string[];
  readonly snapshotId?: string | undefined;
  readonly cloneId?: string | undefined;
  readonly required: readonly Pairs[];
  readonly preferred: readonly Pairs[];
  /** The volume is there: Nomad only has to be told. Without it, Nomad makes it. */
  readonly made?: Made | undefined;
}

export interface Made {
  readonly externalId: string;
  readonly context: Pairs;
  /** Bytes; undefined when the plugin does not say. */
  readonly capacity?: number | undefined;
}

/** The file for `nomad volume register`, or for `nomad volume create` when the volume is not there. */
export function nomadVolumeFile(volume: NomadVolume): string {
  const { made } = volume;
  const optional = (text: string | undefined) => (text === undefined ? undefined : hclString(text));
  const parts: readonly (readonly string[])[] = [
    [`# nomad volume ${made ? 'register' : 'create'} FILE`],
    hclAttributes([
      ['id', hclString(volume.id)],
      ['name', hclString(volume.name)],
      ['type', hclString('csi')],
      ['namespace', optional(volume.namespace)],
      ['plugin_id', hclString(volume.pluginId)],
      ['external_id', optional(made?.externalId)],
      ['snapshot_id', optional(volume.snapshotId)],
      ['clone_id', optional(volume.cloneId)],
      ['capacity_min', sizeText(volume.capacityMin)],
      ['capacity_max', sizeText(volume.capacityMax)],
    ]),
    hclBlock(
      'capability',
      hclAttributes([
        ['access_mode', hclString(volume.accessMode)],
        ['attachment_mode', hclString(volume.attachmentMode)],
      ]),
    ),
    hclBlock(
      'mount_options',
      hclAttributes([
        ['fs_type', optional(volume.fsType)],
        ['mount_flags', volume.mountFlags.length > 0 ? hclList(volume.mountFlags) : undefined],
      ]),
    ),
    hclBlock('topology_request', [
      ...hclBlock('required', volume.required.flatMap(topology)),
      ...hclBlock('preferred', volume.preferred.flatMap(topology)),
    ]),
    hclBlock('parameters', hclMap(volume.parameters)),
    hclBlock('context', hclMap(made?.context ?? {})),
    secretsToFillIn(volume.secrets),
  ];
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function topology(segments: Pairs): readonly string[] {
  return hclBlock('topology', hclBlock('segments', hclMap(segments)));
}

function secretsToFillIn(names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const block = hclBlock(
    'secrets',
    names.map((name) => `${hclString(name)} = "…"`),
  );
  return ['# Secrets are not written to files. Fill them in:', ...block.map((line) => `# ${line}`)];
}

/** Exactly this many bytes, in the largest unit that can say so. */
function sizeText(bytes: number | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  const unit = (['TiB', 'GiB', 'MiB', 'KiB'] as const).find((_name, index) => bytes % 1024 ** (4 - index) === 0);
  const size = { TiB: 1024 ** 4, GiB: 1024 ** 3, MiB: 1024 ** 2, KiB: 1024 };
  return hclString(unit ? `${bytes / size[unit]}${unit}` : String(bytes));
}

/** The body of `PUT /v1/volume/csi/:id` (register) or `…/:id/create`, with all of the volumes. Secrets are left out. */
export function nomadPayload(volumes: readonly NomadVolume[]): { readonly Volumes: readonly object[] } {
  return { Volumes: volumes.map(payloadVolume) };
}

function payloadVolume(volume: NomadVolume): object {
  const { made, required, preferred, fsType, mountFlags } = volume;
  const topologies = (list: readonly Pairs[]) => list.map((segments) => ({ Segments: segments }));
  return withoutUndefined({
    ID: volume.id,
    Name: volume.name,
    Namespace: volume.namespace,
    PluginID: volume.pluginId,
    ExternalID: made?.externalId,
    Capacity: made?.capacity,
    SnapshotID: volume.snapshotId,
    CloneID: volume.cloneId,
    RequestedCapacityMin: volume.capacityMin,
    RequestedCapacityMax: volume.capacityMax,
    RequestedCapabilities: [{ AccessMode: volume.accessMode, AttachmentMode: volume.attachmentMode }],
    MountOptions:
      fsType === undefined && mountFlags.length === 0
        ? undefined
        : withoutUndefined({ FSType: fsType, MountFlags: mountFlags.length > 0 ? mountFlags : undefined }),
    RequestedTopologies:
      required.length + preferred.length === 0
        ? undefined
        : { Required: topologies(required), Preferred: topologies(preferred) },
    Parameters: volume.parameters,
    Context: made?.context,
  });
}

function withoutUndefined(value: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
}
