/** What the process tells the proxy about where it runs. */
import type { RunCommand } from '../backends/exec/run.ts';
import type { SshHosts } from '../backends/ssh/ssh-hosts.ts';
import type { NodeOptions } from '../config/common.ts';
import type { CopyMeter } from '../core/copies.ts';
import type { Driver, WholeNodeOperations } from '../core/driver.ts';
import type { Logger } from '../core/logger.ts';
import type { Operations } from '../core/operations.ts';
import type { AccessMode } from '../core/volume.ts';
import type { DriverType } from '../drivers/type.ts';
import type { LocalNodeFacts } from './local-node.ts';

export interface ProxyEnvironment extends LocalNodeFacts {
  /** `--csi-name`. */
  readonly csiName: string;
  /** Where this process keeps what it has to remember of this node. Undefined: nowhere. */
  readonly stateDirectory?: string | undefined;
  readonly run: RunCommand;
  readonly log: Logger;
  readonly ssh?: SshHosts | undefined;
  readonly copies?: CopyMeter | undefined;
  readonly driverType: (name: string) => DriverType | undefined;
  readonly driverNames: readonly string[];
  /** Makes equal requests share one run. */
  readonly joining: (driver: Driver, operations: Operations) => Driver;
  /** The node's side of volumes whose connection has no file on this node. */
  readonly nodePlane: (
    options: NodeOptions | undefined,
    accessModes?: readonly AccessMode[] | undefined,
  ) => WholeNodeOperations;
}
