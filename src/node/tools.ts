import type { RunCommand } from '../backends/exec/run.ts';
import type { TimeLimits } from '../backends/exec/time-limits.ts';
import type { MountTable } from './mount-table.ts';

/** The `node` block of a configuration, as config/common.ts gives it after validation. */
export interface NodeSettings {
  readonly mount?:
    | {
        readonly mount_flags?: readonly string[] | undefined;
        readonly checkFilesystem?: Readonly<Record<string, CheckSettings>> | undefined;
      }
    | undefined;
  readonly format?: Readonly<Record<string, { readonly customOptions?: readonly string[] | undefined }>> | undefined;
}

export interface CheckSettings {
  readonly enabled?: boolean | undefined;
  readonly customOptions?: readonly string[] | undefined;
  readonly customFilesystemOptions?: readonly string[] | undefined;
}

/** What every part of the node plane works with. */
export interface NodeTools {
  readonly run: RunCommand;
  readonly limits: TimeLimits;
  readonly settings: NodeSettings;
  readonly readTable: () => Promise<MountTable>;
  /** Where sysfs is mounted. Default: /sys. */
  readonly sysfs?: string | undefined;
  /** Where the host's root directory is mounted, if it is. Default: /host. */
  readonly hostRoot?: string | undefined;
}
