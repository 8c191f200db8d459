/** An orchestrator's controller side: what it asks for, and what it gets. */
import type * as csi from '../../src/generated/csi.js';
import { VolumeCapability } from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { type NodeVolume, nodeVolume, type VolumeFacts } from './node-volume.ts';
import type { Switchboard } from './switchboard.ts';

const { Controller } = services;

export interface ControllerOptions {
  /** Behind a proxy. */
  readonly connection?: string;
  /** The type of the volumes' file systems, or `block`. */
  readonly access?: string;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Of calls that make something. Default: that of every call. */
  readonly timeoutMs?: number;
}

export interface CreateOptions {
  readonly bytes?: number;
  readonly parameters?: Readonly<Record<string, string>>;
  /** An id of a snapshot or of a volume that it begins with. */
  readonly snapshot?: string;
  readonly volume?: string;
}

export interface ControllerClient {
  create(name: string, options?: CreateOptions): Promise<csi.Volume>;
  remove(id: string): Promise<void>;
  expand(id: string, bytes: number): Promise<csi.ControllerExpandVolumeResponse>;
  snapshot(volume: string, name: string, parameters?: Readonly<Record<string, string>>): Promise<csi.Snapshot>;
  removeSnapshot(id: string): Promise<void>;
  get(id: string): Promise<csi.ControllerGetVolumeResponse>;
  validate(id: string, context: Readonly<Record<string, string>>): Promise<csi.ValidateVolumeCapabilitiesResponse>;
  list(): Promise<readonly csi.ListVolumesResponse.Entry[]>;
  snapshots(volume: string): Promise<readonly csi.Snapshot[]>;
  /** As a node has it. */
  onNode(volume: csi.Volume, server?: () => Switchboard): NodeVolume;
}

export function controllerClient(server: () => Switchboard, options: ControllerOptions = {}): ControllerClient {
  const { connection, access = '', secrets = {}, timeoutMs } = options;
  const limit = timeoutMs === undefined ? {} : { timeoutMs };
  const own = connection === undefined ? {} : { connection };
  const capability: csi.Init<csi.VolumeCapability> = {
    ...(access === 'block' ? { block: {} } : { mount: { fsType: access } }),
    accessMode: { mode: VolumeCapability.AccessMode.Mode.SINGLE_NODE_WRITER },
  };
  return {
    async create(name, { bytes = 64 * 2 ** 20, parameters = {}, snapshot, volume } = {}) {
      const request: csi.Init<csi.CreateVolumeRequest> = {
        name,
        capacityRange: { requiredBytes: bytes },
        volumeCapabilities: [capability],
        parameters: { ...own, ...parameters },
        ...(snapshot !== undefined && { volumeContentSource: { snapshot: { snapshotId: snapshot } } }),
        ...(volume !== undefined && { volumeContentSource: { volume: { volumeId: volume } } }),
      };
      return required((await server().call(Controller.CreateVolume, request, limit)).volume);
    },
    async remove(id) {
      await server().call(Controller.DeleteVolume, { volumeId: id });
    },
    expand: (id, bytes) =>
      server().call(Controller.ControllerExpandVolume, { volumeId: id, capacityRange: { requiredBytes: bytes } }),
    async snapshot(volume, name, parameters = {}) {
      const request = { sourceVolumeId: volume, name, parameters: { ...parameters } };
      return required((await server().call(Controller.CreateSnapshot, request, limit)).snapshot);
    },
    async removeSnapshot(id) {
      await server().call(Controller.DeleteSnapshot, { snapshotId: id });
    },
    get: (id) => server().call(Controller.ControllerGetVolume, { volumeId: id }),
    validate: (id, context) =>
      server().call(Controller.ValidateVolumeCapabilities, {
        volumeId: id,
        volumeContext: { ...context },
        volumeCapabilities: [capability],
      }),
    list: async () => (await server().call(Controller.ListVolumes, {})).entries,
    async snapshots(volume) {
      const { entries } = await server().call(Controller.ListSnapshots, { sourceVolumeId: volume });
      return entries.map(({ snapshot }) => required(snapshot));
    },
    onNode({ volumeId, volumeContext }, on = server) {
      const facts: VolumeFacts = { id: volumeId, context: volumeContext, secrets, access };
      return nodeVolume(on, { ...facts, folder: volumeId.replaceAll(/\W/g, '-') });
    },
  };
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the answer has nothing in it');
  return value;
}
