/** `--csi-version`: what is told to clients is what that version of the CSI specification knows. */
import {
  controllerCapabilities,
  expansionCapabilities,
  nodeCapabilities,
  pluginCapabilities,
} from '../core/capabilities.ts';
import type { ControllerCapability, NodeCapability } from '../core/capability-names.ts';
import type { Driver } from '../core/driver.ts';
import { CommandError } from './usage-error.ts';

/** The newest version of the specification that is served, as a minor of 1. */
const newestMinor = 12;

export const newestSpecVersion = `1.${newestMinor}.0`;

/** The minor version of CSI 1.x that brought a controller capability; the others are there since 1.0. */
const controllerSince: Readonly<Partial<Record<ControllerCapability, number>>> = {
  EXPAND_VOLUME: 1,
  LIST_VOLUMES_PUBLISHED_NODES: 2,
  VOLUME_CONDITION: 3,
  GET_VOLUME: 3,
  SINGLE_NODE_MULTI_WRITER: 5,
  MODIFY_VOLUME: 9,
  GET_SNAPSHOT: 12,
};

const nodeSince: Readonly<Partial<Record<NodeCapability, number>>> = {
  EXPAND_VOLUME: 1,
  VOLUME_CONDITION: 3,
  SINGLE_NODE_MULTI_WRITER: 5,
  VOLUME_MOUNT_GROUP: 5,
};

const expansionSince = 1;

/** `1.9.0` → 9. Throws for versions that are not served. */
export function minorOfSpecVersion(text: string): number {
  const match = /^v?1\.(\d{1,2})(?:\.\d+)?$/.exec(text.trim());
  const minor = match ? Number(match[1]) : Number.NaN;
  if (minor <= newestMinor) return minor;
  const old = /^v?0\./.test(text.trim());
  throw new CommandError(
    `CSI version "${text}" is not served`,
    `${old ? 'CSI 0.x speaks another protocol. ' : ''}Use 1.0.0 to ${newestSpecVersion}, or leave it out for the newest.`,
  );
}

/** The same driver, telling only the capabilities that CSI 1.`minor` knows. Its operations stay: a client that calls them gets an answer. */
export function atSpecVersion(driver: Driver, minor: number): Driver {
  if (minor >= newestMinor) return driver;
  return {
    ...driver,
    advertised: {
      plugin: pluginCapabilities(driver),
      expansion: minor < expansionSince ? [] : expansionCapabilities(driver),
      controller: controllerCapabilities(driver).filter((name) => minor >= (controllerSince[name] ?? 0)),
      node: nodeCapabilities(driver).filter((name) => minor >= (nodeSince[name] ?? 0)),
    },
  };
}
