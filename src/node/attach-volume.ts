import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import type { VolumeCapability } from '../core/volume.ts';
import { attachRecorded, forgetAttachment, type PlacedRequest } from './attach-recorded.ts';
import type { Attacher, Attachment } from './attachers/attacher.ts';
import { isWriteProtected } from './devices.ts';
import { formatOptions } from './file-systems/format-options.ts';
import type { BlockDevice } from './file-systems/probe.ts';
import { splitFlags } from './mount-options.ts';
import type { MountTable } from './mount-table.ts';
import type { NodePlane } from './node-plane.ts';
import { secretFlags } from './node-secret.ts';
import { inspectPath, resolvePath } from './paths.ts';
import { attacherNamed } from './release.ts';
import type { NodeTools } from './tools.ts';
import { wantBind } from './want-bind.ts';
import { wantDevice } from './want-device.ts';
import { wantShare } from './want-share.ts';
import type { Wanted } from './wanted.ts';

export interface AttachedVolume {
  readonly wanted: Wanted;
  /** The device whose file system is mounted. */
  readonly device?: BlockDevice | undefined;
}

/** The options that a request and the configuration ask for, as single options. */
export function wantedFlags(plane: NodePlane, capability: VolumeCapability): readonly string[] {
  if (capability.type === 'block') return [];
  return splitFlags([...capability.mountFlags, ...(plane.tools.settings.mount?.mount_flags ?? [])]);
}

/** Only reading: because the request says so, or because its access mode does (CSI spec, AccessMode: "published as readonly"). */
export function isReadonly(capability: VolumeCapability, readonly: boolean): boolean {
  return readonly || capability.mode === 'SINGLE_NODE_READER_ONLY' || capability.mode === 'MULTI_NODE_READER_ONLY';
}

/** Attaches the volume to this node and says how it is to be mounted. Throws INVALID_ARGUMENT for what the volume cannot be mounted as. */
export async function attachVolume(
  call: CallContext,
  plane: NodePlane,
  request: PlacedRequest,
  readonly: boolean,
): Promise<AttachedVolume> {
  const [name, attacher] = attacherOf(plane, request);
  refuseShared(plane, attacher, request.capability);
  const attachment = await attachRecorded(call, plane, name, attacher, request);
  try {
    checkAccess(attachment, request.capability);
    return await wantedOf(call, plane, request, attachment, readonly);
  } catch (error) {
    await forgetAttachment(call, plane, name, attacher, request);
    throw error;
  }
}

async function wantedOf(
  call: CallContext,
  plane: NodePlane,
  request: PlacedRequest,
  attachment: Attachment,
  readonly: boolean,
): Promise<AttachedVolume> {
  const { tools } = plane;
  const { capability, table } = request;
  const options = { readonly, flags: wantedFlags(plane, capability) };
  if (attachment.type === 'mount' || attachment.type === 'command') {
    return { wanted: wantShare(tools, attachment, options) };
  }
  const path = await resolvePath(call, tools, table, attachment.path);
  if (path === undefined) throw new CallError('NOT_FOUND', `${attachment.path} does not exist on this node`);
  if (attachment.type === 'directory') return { wanted: wantBind(tools, table, path, 'directory', options) };
  if (capability.type === 'block') return { wanted: wantBind(tools, table, path, 'file', options) };
  const device = { path, number: await numberOf(call, tools, table, path) };
  const flags = [...options.flags, ...secretFlags(call.secrets, request.context)];
  // Whoever only reads can do so from a device that cannot be written. Nobody is to write to it without knowing.
  const forReading = readonly || (isReadonly(capability, false) && (await isWriteProtected(device.number)));
  const volume = { capability, mountGroup: plane.mountGroup, formatOptions: request.context[formatOptions] };
  return { wanted: wantDevice(tools, device, volume, { readonly: forReading, flags }), device };
}

/**
 * A file system of a block device belongs to the one node that has it mounted for writing. Who sets it up with protection of his own names the mode in
 * the configuration. With MULTI_NODE_SINGLE_WRITER it is for the orchestrator to see to it that there is one.
 */
function refuseShared(plane: NodePlane, attacher: Attacher, { type, mode }: VolumeCapability): void {
  if (type === 'block' || !attacher.reachedByMany || plane.accessModes?.includes(mode)) return;
  if (mode !== 'MULTI_NODE_MULTI_WRITER') return;
  throw new CallError(
    'FAILED_PRECONDITION',
    `several nodes cannot write to the file system of one disk, so ${mode} is refused here: use SINGLE_NODE_WRITER, ` +
      'or MULTI_NODE_READER_ONLY, or a block volume; if only one node ever uses it, name this mode in csi.access_modes of the configuration',
  );
}

function attacherOf(plane: NodePlane, request: PlacedRequest): readonly [string, Attacher] {
  const name = request.context.node_attach_driver ?? '';
  const attacher = attacherNamed(plane, name);
  if (attacher) return [name, attacher];
  const known = Object.keys(plane.attachers).join(', ');
  const problem = name ? `node_attach_driver "${name.slice(0, 60)}" is not known` : 'node_attach_driver is missing';
  throw new CallError('INVALID_ARGUMENT', `${problem} in the volume context; possible are ${known}`);
}

/** Which names besides the empty one an `fs_type` may have for volumes that are no block devices. */
const directoryTypes: ReadonlySet<string> = new Set(['none', 'bind']);

function checkAccess(attachment: Attachment, capability: VolumeCapability): void {
  if (attachment.type === 'device') return;
  if (capability.type === 'block') {
    throw new CallError(
      'INVALID_ARGUMENT',
      'this volume is a directory: it can be mounted, but not published as a block device',
    );
  }
  const { fsType } = capability;
  const own = attachment.type === 'directory' ? 'none' : attachment.fsType;
  if (fsType === '' || fsType === own || (attachment.type === 'directory' && directoryTypes.has(fsType))) return;
  if (`fuse.${fsType}` === own) return;
  throw new CallError(
    'INVALID_ARGUMENT',
    `fs_type "${fsType}" does not fit this volume: leave it out, or write "${own}"`,
  );
}

async function numberOf(call: CallContext, tools: NodeTools, table: MountTable, path: string): Promise<string> {
  const found = await inspectPath(call, tools, table, path);
  if (found.is === 'device') return found.device;
  throw new CallError('FAILED_PRECONDITION', `${path} is no block device`);
}
