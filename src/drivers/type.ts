/**
 * A row of the driver table (drivers/index.ts): everything needed to offer a driver under its `driver:` name.
 *
 * To add a driver: write a module that exports one DriverType and name it in the table.
 */
import type { GenericSchema } from 'valibot';
import type { RunCommand } from '../backends/exec/run.ts';
import type { SshHosts } from '../backends/ssh/ssh-hosts.ts';
import type { CopyMeter } from '../core/copies.ts';
import type { Driver } from '../core/driver.ts';
import type { Logger } from '../core/logger.ts';
import type { Topology } from '../core/volume.ts';

export interface DriverType<Options = unknown> {
  /** The value of `driver:`. */
  readonly name: string;
  /** One line for people. */
  readonly summary: string;
  /** The whole configuration document of this driver, the keys common to all drivers included (config/common.ts). */
  readonly schema: GenericSchema<unknown, Options>;
  /** The smallest document the schema accepts. `switchboard drivers` makes a driver from it to tell its capabilities. */
  readonly example: unknown;
  /** Where the driver works on a share of a server, if it does. */
  sharePlace?(options: Options): SharePlace;
  /** Loads what only these options need: libraries, and the driver itself where that is much. Await it before {@link create}. */
  prepare?(options: Options): Promise<void>;
  /** Makes the driver. No input or output, no timers: those begin with the first call. Throws CallError for settings that cannot work. */
  create(options: Options, environment: DriverEnvironment): Driver;
}

/** A folder of this machine where a share of a server is worked on. Of two shares at one place, one would be taken for the other. */
export interface SharePlace {
  readonly base: string;
  /** In one spelling: equal for the same share of the same server. */
  readonly share: string;
  /** The path on the server. */
  readonly path: string;
  /** How it comes there: `controllerMount`. */
  readonly mount: 'never' | 'auto' | 'local';
  /** It is known to be mounted by another name. */
  readonly isRenamed: boolean;
}

/** What the process tells a driver about where it runs. */
export interface DriverEnvironment {
  /** `--csi-name`. */
  readonly csiName: string;
  /** This node's name: `CSI_NODE_ID`, or else the host name. */
  readonly nodeName: string;
  /** The node id that NodeGetInfo reports; behind the proxy the encoded one. */
  readonly nodeId: string;
  /**
   * The segments that NodeGetInfo reports for this node, with the proxy's prefix when there is a proxy. A driver whose volumes live on this
   * node gives exactly these as their topology.
   */
  readonly nodeTopology: Topology;
  /** The connection's name behind the proxy; undefined when the driver serves directly. */
  readonly connection?: string | undefined;
  /** Bytes that ids of this driver may have so that the finished handle stays within 128 (CSI spec, size limits). */
  readonly maxIdBytes: number;
  /** Where this process keeps what it has to remember of this node: for the node plane. Undefined: nowhere. */
  readonly stateDirectory?: string | undefined;
  readonly run: RunCommand;
  /** Other hosts. Default: some of the driver's own, shared with nobody. */
  readonly ssh?: SshHosts | undefined;
  readonly log: Logger;
  /** Counts copies of whole volumes; undefined: nobody wants to know. */
  readonly copies?: CopyMeter | undefined;
}
