/** What drivers are told about the process they run in. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { RunCommand } from '../backends/exec/run.ts';
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
  readonly env: Shell['env'];
  /** Default: what the kernel says, which within a container is the container's name. */
  readonly hostName?: string | undefined;
  readonly run: RunCommand;
  readonly log: Logger;
}

/** For a driver that serves directly. Its topology is the label that existing volumes of such drivers carry. */
export function directEnvironment(facts: ProcessFacts): DriverEnvironment {
  const { csiName, nodeName, run, log } = facts;
  const nodeTopology = { 'org.democratic-csi.topology/node': nodeName };
  return { csiName, nodeName, nodeId: nodeName, nodeTopology, maxIdBytes: 128, run, log };
}

/** `mountGroup`: the configuration asks for VOLUME_MOUNT_GROUP. */
export function proxyEnvironment(facts: ProcessFacts, mountGroup = false): ProxyEnvironment {
  return {
    ...facts,
    hostName: facts.hostName ?? hostname(),
    readFile: (path) => readFile(path, 'utf8'),
    initiatorNameFile: '/etc/iscsi/initiatorname.iscsi',
    hostNqnFile: '/etc/nvme/hostnqn',
    driverType,
    driverNames: driverTypes.map((type) => type.name),
    joining,
    // The proxy tells the node's id and topology itself.
    nodePlane: (settings) =>
      createNodePlane({ info: { nodeId: facts.nodeName }, run: facts.run, settings, mountGroup }),
  };
}
