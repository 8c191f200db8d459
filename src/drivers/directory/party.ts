/** As whom a driver copies: what tells its snapshots from those of others in one repository, and where its copies are counted. */
import { type CopyMeter, silentCopyMeter } from '../../core/copies.ts';
import type { DriverEnvironment } from '../type.ts';

export interface Party {
  /** The host name that its snapshots carry in a repository. */
  readonly host: string;
  /** Its volumes live on one node: others may have volumes of the same names. */
  readonly perNode: boolean;
  /** `instance_id`. */
  readonly instanceId?: string | undefined;
  /** Empty when the driver serves directly. */
  readonly connection: string;
  readonly meter: CopyMeter;
}

export function partyOf(
  environment: DriverEnvironment,
  settings: { readonly instanceId?: string | undefined; readonly perNode: boolean },
): Party {
  const { csiName, nodeName, connection = '', copies = silentCopyMeter } = environment;
  const host = settings.perNode ? `${csiName}-${nodeName}` : csiName;
  return { ...settings, host, connection, meter: copies };
}
