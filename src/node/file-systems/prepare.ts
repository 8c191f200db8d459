/** Gets a block device ready for mounting: a file system is made when it is blank, and checked when the configuration asks for that. */
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { MountCapability } from '../../core/volume.ts';
import type { NodeTools } from '../tools.ts';
import type { FileSystem, Step } from './file-system.ts';
import { fileSystemNamed, wantedFileSystem } from './index.ts';
import { type BlockDevice, probeDevice } from './probe.ts';

export interface Prepared {
  /** What mount(8) is told. */
  readonly type: string;
  /** Undefined: a file system that is mounted as found, but that nothing more is known of. */
  readonly fileSystem: FileSystem | undefined;
}

/**
 * What is on the device is kept and used, also when another file system was asked for. Throws FAILED_PRECONDITION when the device is neither
 * blank nor holds a file system, INVALID_ARGUMENT for an unknown `fsType`.
 */
export async function prepareFileSystem(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  capability: MountCapability,
): Promise<Prepared> {
  const wanted = wantedFileSystem(capability.fsType);
  const content = await probeDevice(call, tools, device);
  if (content.is === 'blank') {
    await format(call, tools, device, capability, wanted);
    return { type: mountType(wanted.name, wanted.fileSystem), fileSystem: wanted.fileSystem };
  }
  const fileSystem = fileSystemNamed(content.type);
  if (fileSystem !== wanted.fileSystem && capability.fsType !== '') {
    const { path } = device;
    call.log.warn('the device holds another file system than asked for', { device: path, found: content.type });
  }
  if (fileSystem) await check(call, tools, device, content.type, fileSystem);
  return { type: mountType(content.type, fileSystem), fileSystem };
}

async function format(
  call: CallContext,
  tools: NodeTools,
  device: BlockDevice,
  capability: MountCapability,
  wanted: { readonly name: string; readonly fileSystem: FileSystem },
): Promise<void> {
  if (capability.mode === 'MULTI_NODE_READER_ONLY') {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${device.path} is blank, and several nodes want to read it: none of them may format it; publish it for writing first`,
    );
  }
  const custom = tools.settings.format?.[wanted.name]?.customOptions ?? [];
  call.log.info('formatting a blank device', { device: device.path, fsType: wanted.name });
  // Not ended with its call: a half-made file system is neither blank nor one, and could never be used without somebody's wiping it.
  const toItsEnd = { ...call, signal: new AbortController().signal };
  await runStep(toItsEnd, tools, wanted.fileSystem.make(wanted.name, device.path, custom));
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

/** Runs one of a file system's programs. */
export async function runStep(call: CallContext, tools: NodeTools, step: Step): Promise<void> {
  const target = step.args.find((argument) => argument.startsWith('/')) ?? '';
  await call.waitingFor(`\`${step.program}\` of ${target}`, () =>
    tools.run(call, { ...step, timeoutMs: tools.limits.filesystem }),
  );
}

/** ext2, ext3 and ext4 are mounted under their own names; of the others only one name is known to the kernel. */
function mountType(name: string, fileSystem: FileSystem | undefined): string {
  if (name === 'ext4dev') return 'ext4';
  return fileSystem && !name.startsWith('ext') ? (fileSystem.names[0] ?? name) : name;
}
