/** A volume as its plugin knows it now, by whichever call the plugin has for that. */
import { CallError } from '../../core/errors.ts';
import { services } from '../../generated/services.js';
import { UsageError } from '../usage-error.ts';
import { controllerCapabilities } from './capabilities.ts';
import { listVolumes } from './list-volumes.ts';
import type { Session } from './session.ts';
import { type ShownVolume, volumeShape } from './shapes.ts';

/** Throws NOT_FOUND, and UNIMPLEMENTED when the plugin can neither get nor list volumes. */
export async function findVolume(session: Session, id: string): Promise<ShownVolume> {
  const has = await controllerCapabilities(session);
  if (has.includes('GET_VOLUME')) {
    const { volume, status } = await session.call(`getting ${id}`, services.Controller.ControllerGetVolume, {
      volumeId: id,
    });
    if (volume) return volumeShape(volume, status);
    throw new CallError('INTERNAL', 'the answer holds no volume');
  }
  if (!has.includes('LIST_VOLUMES')) {
    throw new CallError('UNIMPLEMENTED', 'the plugin can neither get nor list volumes');
  }
  for await (const volume of listVolumes(session)) if (volume.id === id) return volume;
  throw new CallError('NOT_FOUND', `there is no volume ${id}`);
}

/** The context that node calls need: the one given, or else the one the plugin tells. */
export async function volumeContext(
  session: Session,
  id: string,
  given: Readonly<Record<string, string>> | undefined,
): Promise<Readonly<Record<string, string>>> {
  if (given !== undefined) return given;
  try {
    return (await findVolume(session, id)).context;
  } catch (error) {
    if (!(error instanceof CallError && error.code === 'UNIMPLEMENTED')) throw error;
    throw new UsageError(
      'this plugin does not tell the context of a volume',
      'Give it as --context key=value: "ctl create" printed it, and orchestrators keep it with the volume.',
    );
  }
}
