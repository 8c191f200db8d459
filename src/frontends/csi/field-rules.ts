/**
 * What the specification demands of a request before anybody looks at what it means: required fields and size limits
 * (CSI spec, "Size Limits" and the REQUIRED marks of each message).
 *
 * Ids may be longer here than the 128 bytes the spec allows a plugin to hand out, because democratic-csi has handed out longer ones.
 */
import { CallError } from '../../core/errors.ts';

/** Fields that must be there, by request type, in the order in which they are missed. */
const required: Readonly<Record<string, readonly string[]>> = {
  CreateVolumeRequest: ['name', 'volumeCapabilities'],
  DeleteVolumeRequest: ['volumeId'],
  ControllerPublishVolumeRequest: ['volumeId', 'nodeId', 'volumeCapability'],
  ControllerUnpublishVolumeRequest: ['volumeId'],
  ValidateVolumeCapabilitiesRequest: ['volumeId', 'volumeCapabilities'],
  ControllerGetVolumeRequest: ['volumeId'],
  ControllerModifyVolumeRequest: ['volumeId', 'mutableParameters'],
  ControllerExpandVolumeRequest: ['volumeId', 'capacityRange'],
  CreateSnapshotRequest: ['sourceVolumeId', 'name'],
  DeleteSnapshotRequest: ['snapshotId'],
  GetSnapshotRequest: ['snapshotId'],
  NodeStageVolumeRequest: ['volumeId', 'stagingTargetPath', 'volumeCapability'],
  NodeUnstageVolumeRequest: ['volumeId', 'stagingTargetPath'],
  NodePublishVolumeRequest: ['volumeId', 'targetPath', 'volumeCapability'],
  NodeUnpublishVolumeRequest: ['volumeId', 'targetPath'],
  NodeGetVolumeStatsRequest: ['volumeId', 'volumePath'],
  NodeExpandVolumeRequest: ['volumeId', 'volumePath'],
};

const standardLimit = 128;
const mapLimit = 4096;
const pathLimit = 4096;

/** Strings whose limit is not the standard one, in bytes. */
const limits: Readonly<Record<string, number>> = {
  nodeId: 256,
  volumeId: 1024,
  snapshotId: 1024,
  sourceVolumeId: 1024,
  startingToken: mapLimit,
  stagingTargetPath: pathLimit,
  targetPath: pathLimit,
  volumePath: pathLimit,
  mountFlags: mapLimit,
};

/** `volumePath` only asks what is there, and nothing is at what is no path: NOT_FOUND, which the node says. */
const paths = ['stagingTargetPath', 'targetPath'];

/**
 * Throws INVALID_ARGUMENT for a request that misses a required field, names a path that is not absolute, or exceeds a size limit.
 *
 * @param type the message's name without its package, such as `CreateVolumeRequest`
 */
export function checkFields(type: string, request: object): void {
  const fields = request as Readonly<Record<string, unknown>>;
  for (const name of required[type] ?? []) {
    if (isMissing(fields[name])) throw invalid(`${snakeCase(name)} is required`);
  }
  for (const name of paths) {
    const value = fields[name];
    if (typeof value === 'string' && value !== '') checkPath(name, value);
  }
  for (const [name, value] of Object.entries(fields)) {
    if (name !== 'secrets') checkSize(name, value);
  }
}

function isMissing(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return (Array.isArray(value) || isMap(value)) && Object.keys(value).length === 0;
}

function checkPath(name: string, value: string): void {
  if (!value.startsWith('/')) throw invalid(`${snakeCase(name)} must be an absolute path, not "${value.slice(0, 80)}"`);
  if (value.includes('\0')) throw invalid(`${snakeCase(name)} must not contain a NUL byte`);
  if (value.split('/').includes('..')) throw invalid(`${snakeCase(name)} must not contain ".."`);
}

function checkSize(name: string, value: unknown): void {
  if (typeof value === 'string') {
    const limit = limits[name] ?? standardLimit;
    const bytes = Buffer.byteLength(value);
    if (bytes > limit) throw invalid(`${snakeCase(name)} has ${bytes} bytes, ${limit} are allowed`);
  } else if (Array.isArray(value)) {
    for (const item of value) checkSize(name, item);
  } else if (isMap(value)) {
    const bytes = Object.entries(value).reduce((sum, [key, text]) => sum + Buffer.byteLength(`${key}${text}`), 0);
    if (bytes > mapLimit) throw invalid(`${snakeCase(name)} has ${bytes} bytes, ${mapLimit} are allowed`);
  } else if (value !== null && typeof value === 'object') {
    for (const [inner, item] of Object.entries(value)) checkSize(inner, item);
  }
}

/** A protobuf map, as opposed to a message: only messages have a class of their own. */
function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  if (value === null || typeof value !== 'object') return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function invalid(message: string): CallError {
  return new CallError('INVALID_ARGUMENT', message);
}
