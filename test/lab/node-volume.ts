/** A volume as an orchestrator's node agent handles it, in a guest. */
import type * as csi from '../../src/generated/csi.js';
import { VolumeCapability, VolumeUsage } from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import type { Switchboard } from './switchboard.ts';

const { Node } = services;

/** Every path that volumes are mounted at in guests is below it. */
export const mountRoot = '/var/lib/lab';

export interface VolumeFacts {
  readonly id: string;
  readonly context: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>> | undefined;
  /** `block`, or the type of a file system; empty: the driver's default. */
  readonly access?: string | undefined;
  readonly mountFlags?: readonly string[] | undefined;
  /** Whose the files are, where the file system keeps no owners. */
  readonly group?: string | undefined;
  /** The name of its folder below the mount root. Default: its id. */
  readonly folder?: string | undefined;
}

export interface NodeVolume {
  readonly staging: string;
  target(name: string): string;
  stage(timeoutMs?: number): Promise<void>;
  unstage(timeoutMs?: number): Promise<void>;
  publish(name: string, options?: { readonly readonly?: boolean }): Promise<void>;
  unpublish(name: string, timeoutMs?: number): Promise<void>;
  /** Bytes in total, and what is wrong with the volume, if anything is. */
  stats(name: string): Promise<{ readonly totalBytes: number; readonly trouble: string }>;
  expand(bytes: number): Promise<void>;
}

export function nodeVolume(server: () => Switchboard, facts: VolumeFacts): NodeVolume {
  const { id, context, secrets = {}, access = '', mountFlags = [], group = '', folder = id } = facts;
  const staging = `${mountRoot}/${folder}/staging`;
  const target = (name: string) => `${mountRoot}/${folder}/${name}`;
  const volumeCapability: csi.Init<csi.VolumeCapability> = {
    ...(access === 'block'
      ? { block: {} }
      : { mount: { fsType: access, mountFlags: [...mountFlags], volumeMountGroup: group } }),
    accessMode: { mode: VolumeCapability.AccessMode.Mode.SINGLE_NODE_WRITER },
  };
  const volume = { volumeId: id, volumeContext: { ...context }, secrets: { ...secrets }, volumeCapability };
  const limited = (timeoutMs?: number) => (timeoutMs === undefined ? {} : { timeoutMs });
  return {
    staging,
    target,
    async stage(timeoutMs) {
      await server().call(Node.NodeStageVolume, { ...volume, stagingTargetPath: staging }, limited(timeoutMs));
    },
    async unstage(timeoutMs) {
      const request = { volumeId: id, stagingTargetPath: staging };
      await server().call(Node.NodeUnstageVolume, request, limited(timeoutMs));
    },
    async publish(name, { readonly = false } = {}) {
      const paths = { stagingTargetPath: staging, targetPath: target(name) };
      await server().call(Node.NodePublishVolume, { ...volume, ...paths, readonly });
    },
    async unpublish(name, timeoutMs) {
      const request = { volumeId: id, targetPath: target(name) };
      await server().call(Node.NodeUnpublishVolume, request, limited(timeoutMs));
    },
    async stats(name) {
      const paths = { volumePath: target(name), stagingTargetPath: staging };
      const answer = await server().call(Node.NodeGetVolumeStats, { volumeId: id, ...paths });
      const bytes = answer.usage.find(({ unit }) => unit === VolumeUsage.Unit.BYTES);
      const { abnormal, message } = answer.volumeCondition ?? { abnormal: false, message: '' };
      return { totalBytes: bytes?.total ?? 0, trouble: abnormal ? message || 'abnormal' : '' };
    },
    async expand(bytes) {
      const paths = { volumePath: target('rw'), stagingTargetPath: staging };
      const capacityRange = { requiredBytes: bytes };
      await server().call(Node.NodeExpandVolume, { volumeId: id, ...paths, capacityRange, volumeCapability });
    },
  };
}
