/** CSI requests in short, as tests send them to a server. */
import { CallError } from '../../src/core/errors.ts';
import type { AccessMode } from '../../src/core/volume.ts';
import * as csi from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import type { Patience, Server } from './server-under-test.ts';

const { Controller, Node } = services;
export const mib = 2 ** 20;

export const writer = capability('SINGLE_NODE_WRITER');

export function capability(mode: AccessMode): csi.Init<csi.VolumeCapability> {
  return { mount: {}, accessMode: { mode: csi.VolumeCapability.AccessMode.Mode[mode] } };
}

export interface NewVolume {
  readonly connection?: string;
  readonly bytes?: number;
  readonly fromVolume?: string;
  readonly fromSnapshot?: string;
}

export function volumeRequest(name: string, wanted: NewVolume = {}): csi.Init<csi.CreateVolumeRequest> {
  const { connection = 'local', bytes = mib, fromVolume, fromSnapshot } = wanted;
  return {
    name,
    capacityRange: { requiredBytes: bytes },
    volumeCapabilities: [writer],
    parameters: { connection },
    ...(fromVolume !== undefined && { volumeContentSource: { volume: { volumeId: fromVolume } } }),
    ...(fromSnapshot !== undefined && { volumeContentSource: { snapshot: { snapshotId: fromSnapshot } } }),
  };
}

/** The volume's handle. */
export async function createVolume(
  server: Server,
  name: string,
  wanted?: NewVolume,
  patience?: Patience,
): Promise<string> {
  const { volume } = await server.call(Controller.CreateVolume, volumeRequest(name, wanted), patience);
  return volume?.volumeId ?? '';
}

export async function deleteVolume(server: Server, volumeId: string, patience?: Patience): Promise<void> {
  await server.call(Controller.DeleteVolume, { volumeId }, patience);
}

/** The snapshot's handle. */
export async function createSnapshot(
  server: Server,
  name: string,
  sourceVolumeId: string,
  patience?: Patience,
): Promise<string> {
  const { snapshot } = await server.call(Controller.CreateSnapshot, { name, sourceVolumeId }, patience);
  return snapshot?.snapshotId ?? '';
}

export async function deleteSnapshot(server: Server, snapshotId: string): Promise<void> {
  await server.call(Controller.DeleteSnapshot, { snapshotId });
}

export async function publish(server: Server, volumeId: string, targetPath: string, wanted = writer): Promise<void> {
  const { volume } = await server.call(Controller.ControllerGetVolume, { volumeId });
  await server.call(Node.NodePublishVolume, {
    volumeId,
    targetPath,
    volumeCapability: wanted,
    volumeContext: volume?.volumeContext ?? {},
  });
}

export async function unpublish(server: Server, volumeId: string, targetPath: string): Promise<void> {
  await server.call(Node.NodeUnpublishVolume, { volumeId, targetPath });
}

/** `OK`, or the code of its failure with the message. Anything else is thrown. */
export async function outcomeOf(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await work;
    return { code: 'OK', message: '' };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return { code: error.code, message: error.message };
  }
}

/** How many calls ended with which code. */
export async function tally(calls: readonly Promise<unknown>[]): Promise<Readonly<Record<string, number>>> {
  const outcomes = await Promise.all(calls.map(outcomeOf));
  const codes = outcomes.map(({ code }) => code);
  return Object.fromEntries(
    [...new Set(codes)].sort().map((code) => [code, codes.filter((one) => one === code).length]),
  );
}
