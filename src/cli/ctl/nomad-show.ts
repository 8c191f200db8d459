/** Volumes, made or to be made, as files for Nomad. */
import { services } from '../../generated/services.js';
import { capacityFrom } from './arguments.ts';
import { type NomadOptions, requireNomadCan } from './nomad-options.ts';
import { type NomadVolume, nomadPayload, nomadVolumeFile } from './nomad-volume.ts';
import type { Session } from './session.ts';
import type { ShownVolume } from './shapes.ts';
import { type CreateOptions, parametersOf } from './volume-options.ts';

export interface NamedVolume {
  readonly name: string;
  /** Undefined: Nomad is to make it. */
  readonly made?: ShownVolume | undefined;
}

/** Prints the volume files one after another, or with `--json` one request for all of them. */
export async function showNomadVolumes(
  session: Session,
  volumes: readonly NamedVolume[],
  options: CreateOptions & NomadOptions,
): Promise<void> {
  const pluginId = await pluginIdOf(session, options);
  const nomad = volumes.map((volume) => nomadVolume(volume, options, pluginId));
  session.show(nomadPayload(nomad), nomad.map(nomadVolumeFile).join('\n'));
}

/** `--plugin-id`, or the name by which the plugin calls itself, which the example jobs use as their id too. */
export async function pluginIdOf(session: Session, { pluginId }: NomadOptions): Promise<string> {
  return pluginId ?? (await session.call('asking who it is', services.Identity.GetPluginInfo, {})).name;
}

export function nomadVolume(
  { name, made }: NamedVolume,
  options: CreateOptions & NomadOptions,
  pluginId: string,
): NomadVolume {
  const range = capacityFrom(options.size, options.limit);
  const wanted = options.topology ?? [];
  return {
    id: name,
    name,
    namespace: options.namespace,
    pluginId,
    capacityMin: made?.capacityBytes ?? range?.requiredBytes ?? undefined,
    capacityMax: range?.limitBytes ?? undefined,
    accessMode: requireNomadCan(options),
    attachmentMode: options.block ? 'block-device' : 'file-system',
    fsType: options.fsType,
    mountFlags: options.mountFlag ?? [],
    parameters: parametersOf(options),
    secrets: Object.keys(options.secret ?? {}),
    // Only creating looks at these.
    snapshotId: made ? undefined : options.fromSnapshot,
    cloneId: made ? undefined : options.fromVolume,
    // Nomad takes what is required of a registered volume for where it can be reached from.
    required: made ? (made.topology ?? []) : wanted,
    preferred: made ? [] : wanted,
    made: made && { externalId: made.id, context: made.context, capacity: made.capacityBytes },
  };
}
