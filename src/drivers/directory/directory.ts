/** What a directory driver is made of: the settings that one driver of this family differs from another in. */
import type { RunCommand } from '../../backends/exec/run.ts';
import type { Logger } from '../../core/logger.ts';
import type { Topology, VolumeContext } from '../../core/volume.ts';
import type { CapabilityRules } from '../common/capability-check.ts';
import type { NamingOptions } from '../common/volume-id.ts';
import type { Files } from './files.ts';
import type { Call, HostView } from './host-view.ts';
import type { Layout } from './layout.ts';
import type { DirectoryOptions } from './options.ts';
import type { Party } from './party.ts';
import type { ProjectQuotas } from './project-quota.ts';

export interface Directory {
  /** Files and folders as this process sees them. */
  readonly layout: Layout;
  readonly files: Files;
  /** The same folders as programs of the host see them. */
  readonly hostView: HostView;
  readonly run: RunCommand;
  readonly log: Logger;
  readonly options: DirectoryOptions;
  readonly naming: NamingOptions;
  readonly rules: CapabilityRules;
  readonly party: Party;
  /** Bytes that snapshot ids may have. */
  readonly maxIdBytes: number;
  /** What nodes need to reach a volume. */
  contextOf(volumeId: string): VolumeContext;
  /** The segments of the only node its volumes can be reached from; undefined: they can from everywhere. */
  readonly node?: Topology | undefined;
  /** Where on this node a folder is mounted, as far as that can be seen. */
  readonly mountPointsOf?: ((path: string) => Promise<readonly string[]>) | undefined;
  /**
   * The base path is on a server. It may refuse attributes that this machine's kernel shows on its files, such as security labels; copies are made
   * without those.
   */
  readonly onServer?: boolean | undefined;
  /** Limits volumes to their size; undefined: the size is only remembered. */
  readonly quotas: ProjectQuotas;
  /** DeleteVolume leaves everything as it is (`_private.csi.volume.deleteStrategy: retain`). */
  readonly retain: boolean;
}

export type { Call };
