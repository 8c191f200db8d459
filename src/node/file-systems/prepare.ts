/** Gets a block device ready for mounting: a file system is made when it is blank, checked when the configuration asks for that, and grown if need be. */
import type { CallContext } from '../../core/call.ts';
import { asCallError, CallError } from '../../core/errors.ts';
import type { MountCapability } from '../../core/volume.ts';
import { isWriteProtected } from '../devices.ts';
import type { NodeTools } from '../tools.ts';
import type { FileSystem } from './file-system.ts';
import { parseFormatOptions } from './format-options.ts';
import { missingBytes } from './grow.ts';
import { fileSystemNamed, wantedFileSystem } from './index.ts';
import { type BlockDevice, type Content, probeDevice } from './probe.ts';
import { runStep, runToItsEnd } from './step.ts';
import { refuseWorkedOn } from './worked-on.ts';

export interface Prepared {
  /** What mount(8) is told. */
  readonly type: string;
  /** Undefined: a file system that is mounted as found, but that nothing more is known of. */
  readonly fileSystem: FileSystem | undefined;
}

export interface PrepareOptions {
  readonly capability: MountCapability;
  /** It is to be mounted for reading. */
  readonly readonly: boolean;
  /** How the volume wants it made, beyond what the configuration says. */
  readonly formatOptions?: string | undefined;
}

/**
 * What is on the device is kept and used, also when another file system was asked for. Throws FAILED_PRECONDITION when the device is neither
 * blank nor holds a file system, INVALID_ARGUMENT for an unknown `fsType`, UNAVAILABLE while a file system is being made on it.
 */
export async function prepareFileSystem(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  { capability, readonly, formatOptions = '' }: PrepareOptions,
): Promise<Prepared> {
  const wanted = wantedFileSystem(capability.fsType);
  const content = await contentOf(call, tools, device);
  if (content.is === 'blank') {
    const own = parseFormatOptions(formatOptions, capability.fsType);
    await format(call, tools, device, capability, { ...wanted, own });
    return { type: mountType(wanted.name, wanted.fileSystem), fileSystem: wanted.fileSystem };
  }
  const fileSystem = fileSystemNamed(content.type);
  if (fileSystem !== wanted.fileSystem && capability.fsType !== '') {
    const { path } = device;
    call.log.warn('the device holds another file system than asked for', { device: path, found: content.type });
  }
  if (fileSystem && (await mayChange(call, device, capability))) {
    await check(call, tools, device, content.type, fileSystem);
    if (!readonly && !fileSystem.grow) await growUnmounted(call, tools, device, content.type, fileSystem);
  }
  return { type: mountType(content.type, fileSystem), fileSystem };
}

/** A program that is at work now explains whatever is found; what it leaves is what counts. */
async function contentOf(call: CallContext, tools: NodeTools, device: BlockDevice): Promise<Content> {
  try {
    const content = await probeDevice(call, tools, device);
    // What is being checked or grown looks like any file system.
    if (content.is === 'blank' || fileSystemNamed(content.type)?.growUnmounted) await refuseWorkedOn(device);
    return content;
  } catch (error) {
    if (error instanceof CallError && error.code === 'FAILED_PRECONDITION') await refuseWorkedOn(device);
    throw error;
  }
}

/** Another node may have it mounted, for all that can be known here: what writes to it then, writes under that mount. */
async function mayChange(call: CallContext, device: BlockDevice, { mode }: MountCapability): Promise<boolean> {
  if (mode.startsWith('MULTI_NODE_')) {
    call.log.info('not checked and not grown: other nodes may have it mounted', { device: device.path, mode });
    return false;
  }
  return !(await isWriteProtected(device.number));
}

async function format(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  capability: MountCapability,
  wanted: { readonly name: string; readonly fileSystem: FileSystem; readonly own: readonly string[] },
): Promise<void> {
  const refuse = (why: string) => new CallError('FAILED_PRECONDITION', `${device.path} is blank, and ${why}`);
  if (capability.mode === 'MULTI_NODE_READER_ONLY') {
    throw refuse('several nodes want to read it: none of them may format it; publish it for writing first');
  }
  if (await isWriteProtected(device.number)) throw refuse('it is write-protected: there is nothing to be read from it');
  const custom = tools.settings.format?.[wanted.name]?.customOptions ?? [];
  call.log.info('formatting a blank device', { device: device.path, fsType: wanted.name });
  await runToItsEnd(call, tools, wanted.fileSystem.make(wanted.name, device.path, [...custom, ...wanted.own]));
}

async function check(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  name: string,
  fileSystem: FileSystem,
): Promise<void> {
  const settings = tools.settings.mount?.checkFilesystem?.[name];
  if (!settings?.enabled) return;
  const step = fileSystem.check(device.path, settings.customOptions ?? [], settings.customFilesystemOptions ?? []);
  await runStep(call, tools, step);
}

/** A volume that cannot be grown is no worse than before: that is logged, and does not keep it from being used. */
async function growUnmounted(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  name: string,
  fileSystem: FileSystem,
): Promise<void> {
  const about = { device: device.path, fsType: name };
  if ((await missingBytes(call, tools, device, fileSystem)) === 0) return;
  if (!fileSystem.growUnmounted)
    return call.log.warn('a file system is smaller than its device and cannot grow', about);
  call.log.info('growing a file system to the size of its device before it is mounted', about);
  try {
    for (const step of fileSystem.growUnmounted(device.path)) await runToItsEnd(call, tools, step);
  } catch (error) {
    const why = asCallError(error).message;
    call.log.warn('a file system is smaller than its device and could not be grown', { ...about, why });
  }
}

/** ext2, ext3 and ext4 are mounted under their own names; of the others only one name is known to the kernel. */
function mountType(name: string, fileSystem: FileSystem | undefined): string {
  if (name === 'ext4dev') return 'ext4';
  return fileSystem && !name.startsWith('ext') ? (fileSystem.names[0] ?? name) : name;
}
