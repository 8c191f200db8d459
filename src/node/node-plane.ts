import type { AccessMode } from '../core/volume.ts';
import type { Attacher } from './attachers/attacher.ts';
import type { StagedRecords } from './records/records.ts';
import type { NodeTools } from './tools.ts';

/** A node plane's parts, as its operations use them. */
export interface NodePlane {
  readonly tools: NodeTools;
  readonly attachers: Readonly<Record<string, Attacher>>;
  /** Whether the volume_mount_group of requests is heeded. */
  readonly mountGroup: boolean;
  /** The access modes that the configuration names, if it does. */
  readonly accessModes?: readonly AccessMode[] | undefined;
  readonly records: StagedRecords;
  /** Whose volumes these are, behind the proxy. */
  readonly connection?: string | undefined;
}
