/** What people write on a `ctl` command line, as CSI messages. */
import { CallError } from '../../core/errors.ts';
import { parseSize } from '../../core/sizes.ts';
import { type AccessMode, accessModes } from '../../core/volume.ts';
import type { CapacityRange, Init, VolumeCapability } from '../../generated/csi.js';
import { UsageError } from '../usage-error.ts';

const shortModes: Readonly<Record<string, AccessMode>> = {
  rwo: 'SINGLE_NODE_WRITER',
  rwop: 'SINGLE_NODE_SINGLE_WRITER',
  rox: 'MULTI_NODE_READER_ONLY',
  rwx: 'MULTI_NODE_MULTI_WRITER',
};

export interface CapabilityOptions {
  readonly access: string;
  readonly block?: boolean;
  readonly fsType?: string;
  readonly mountFlag?: readonly string[];
}

export function capabilityFrom(options: CapabilityOptions): Init<VolumeCapability> {
  const accessMode = { mode: accessModes.indexOf(accessModeFrom(options.access)) };
  if (!options.block) {
    return { accessMode, mount: { fsType: options.fsType ?? '', mountFlags: options.mountFlag ?? [] } };
  }
  if (options.fsType !== undefined || options.mountFlag !== undefined) {
    throw new UsageError('a block volume has no file system: --block excludes --fs-type and --mount-flag');
  }
  return { accessMode, block: {} };
}

/** `rwo`, `SINGLE_NODE_WRITER`, `single-node-writer` … → the mode. Throws UsageError. */
export function accessModeFrom(text: string): AccessMode {
  const spelled = text.toUpperCase().replaceAll('-', '_');
  const mode = shortModes[text.toLowerCase()] ?? accessModes.find((one) => one === spelled);
  if (mode !== undefined) return mode;
  const names = [...Object.keys(shortModes), ...accessModes.slice(1)].join(', ');
  throw new UsageError(`"${text}" is not an access mode`, `One of ${names}.`);
}

/** Neither given: no range, and the plugin chooses. */
export function capacityFrom(size: string | undefined, limit: string | undefined): Init<CapacityRange> | undefined {
  if (size === undefined && limit === undefined) return undefined;
  return {
    ...(size !== undefined && { requiredBytes: sizeFrom(size) }),
    ...(limit !== undefined && { limitBytes: sizeFrom(limit) }),
  };
}

function sizeFrom(text: string): number {
  try {
    return parseSize(text);
  } catch (error) {
    if (error instanceof CallError) throw new UsageError(error.message);
    throw error;
  }
}

/** A positive whole number. */
export function parseCount(text: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : 0;
  if (count > 0 && Number.isSafeInteger(count)) return count;
  throw new UsageError(`"${text}" is not a positive whole number`);
}
