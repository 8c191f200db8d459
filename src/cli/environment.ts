/** What drivers are told about the process they run in. */
import { hostname } from 'node:os';
import { readHostFile } from '../backends/exec/host-file.ts';
import { defaultHostSettings } from '../backends/exec/host-settings.ts';
import type { RunCommand } from '../backends/exec/run.ts';
import type { SshHosts } from '../backends/ssh/ssh-hosts.ts';
import type { CopyMeter } from '../core/copies.ts';
import type { Logger } from '../core/logger.ts';
import { driverType, driverTypes } from '../drivers/index.ts';
import type { DriverEnvironment } from '../drivers/type.ts';
import { createNodePlane } from '../node/plane.ts';
import { joining } from '../pipeline/joining.ts';
import type { ProxyEnvironment } from '../proxy/environment.ts';
import type { Shell } from './shell.ts';

export interface ProcessFacts {
  readonly csiName: string;
  /** `CSI_NODE_ID`, or else the host name. */
  readonly nodeName: string;
  /** Default: what the kernel says, which within a container is the container's name. */
  readonly hostName?: string | undefined;
  readonly env: Shell['env'];
  /** Where this process keeps its state. Undefined: nothing is remembered. */
  readonly stateDirectory?: string | undefined;
  readonly run: RunCommand;
  /** Where the host's root directory is mounted, if it is. */
  readonly hostRoot?: string | undefined;
  readonly log: Logger;
  /** Shared by all connections. */
  readonly ssh?: SshHosts | undefined;
  readonly copies?: CopyMeter | undefined;
}

/** For a driver that serves directly. Its topology is the label that existing volumes of such drivers carry. */
export function directEnvironment(facts: ProcessFacts): DriverEnvironment {
  const { csiName, nodeName, stateDirectory, run, ssh, log, copies } = facts;
  const nodeTopology = { 'org.democratic-csi.topology/node': nodeName };
  return { csiName, nodeName, nodeId: nodeName, nodeTopology, maxIdBytes: 128, stateDirectory, run, ssh, log, copies };
}

/** `mountGroup`: the configuration asks for VOLUME_MOUNT_GROUP. */
export function proxyEnvironment(facts: ProcessFacts, mountGroup = false): ProxyEnvironment {
  return {
    ...facts,
    hostName: facts.hostName ?? hostname(),
    readFile: (path) => readHostFile(path, facts.hostRoot ?? defaultHostSettings.root),
    initiatorNameFile: '/etc/iscsi/initiatorname.iscsi',
    hostNqnFile: '/etc/nvme/hostnqn',
    driverType,
    driverNames: driverTypes.map((type) => type.name),
    joining,
    // The proxy tells the node's id and topology itself.
    nodePlane: (settings, accessModes) => {
      const { nodeName: nodeId, run, stateDirectory, hostRoot } = facts;
      return createNodePlane({ info: { nodeId }, run, settings, mountGroup, accessModes, stateDirectory, hostRoot });
    },
  };
}
