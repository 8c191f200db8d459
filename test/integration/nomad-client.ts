/** The volume manager of a Nomad client: which paths it makes, what it calls when, and what it complains about. */
import { lstat, mkdir, rmdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { CallError } from '../../src/core/errors.ts';
import * as csi from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { mountsBelow } from '../conformance/leftovers.ts';
import type { Plugin } from './nomad-plugin.ts';

const { Node } = services;

export interface RegisteredVolume {
  readonly id: string;
  readonly namespace: string;
  readonly externalId: string;
  readonly context: Readonly<Record<string, string>>;
}

export interface Usage {
  readonly readonly: boolean;
  readonly accessMode: csi.VolumeCapability.AccessMode.Mode;
}

const modes = csi.VolumeCapability.AccessMode.Mode;

export const readWrite: Usage = { readonly: false, accessMode: modes.SINGLE_NODE_WRITER };
export const readOnly: Usage = { readonly: true, accessMode: modes.SINGLE_NODE_READER_ONLY };
export const shared: Usage = { readonly: false, accessMode: modes.MULTI_NODE_MULTI_WRITER };

export function capabilityOf({ accessMode }: Usage): csi.Init<csi.VolumeCapability> {
  return { mount: {}, accessMode: { mode: accessMode } };
}

export interface VolumeManager {
  /** Before an allocation's tasks start. Gives the path that its tasks are given. */
  mount(
    volume: RegisteredVolume,
    allocId: string,
    usage: Usage,
    publishContext?: Record<string, string>,
  ): Promise<string>;
  /** After they have ended. */
  unmount(volume: RegisteredVolume, allocId: string, usage: Usage): Promise<void>;
  /** Calls made since the last look. */
  calls(): readonly string[];
}

export function volumeManager(plugin: () => Plugin): VolumeManager {
  const claims = new Map<string, Set<string>>();
  const made: string[] = [];
  const folder = () => plugin().volumesFolder;
  /** A path of the host as the plugin has it. */
  const inPlugin = (path: string) => join(plugin().stagePublishBaseDir ?? folder(), relative(folder(), path));
  const usageName = ({ readonly, accessMode }: Usage) =>
    `${readonly ? 'ro' : 'rw'}-file-system-${(modes[accessMode] ?? '').toLowerCase().replaceAll('_', '-')}`;
  const stagingOf = (volume: RegisteredVolume, usage: Usage) =>
    join(folder(), 'staging', volume.namespace, volume.id, usageName(usage));
  const targetOf = (volume: RegisteredVolume, allocId: string, usage: Usage) =>
    join(folder(), 'per-alloc', allocId, volume.id, usageName(usage));
  const claimsOf = (volume: RegisteredVolume, usage: Usage) => {
    const key = `${volume.namespace} ${volume.id} ${usageName(usage)}`;
    return claims.get(key) ?? claims.set(key, new Set()).get(key) ?? new Set();
  };
  const staging = () => plugin().nodeCan.has('STAGE_UNSTAGE_VOLUME');

  async function unpublish(volume: RegisteredVolume, allocId: string, usage: Usage): Promise<void> {
    const targetPath = targetOf(volume, allocId, usage);
    made.push('unpublish');
    const failure = await failureOf(
      plugin().call(Node.NodeUnpublishVolume, { volumeId: volume.externalId, targetPath: inPlugin(targetPath) }),
    );
    if (!(await isThere(targetPath))) {
      if (failure && !isIgnorable(failure)) throw failure;
      return;
    }
    // What the plugin left is taken away here, and whatever it said is then ignored. This fails on a mount.
    await rmdir(targetPath).catch((error: unknown) => {
      throw failure ?? error;
    });
  }

  return {
    async mount(volume, allocId, usage, publishContext = {}) {
      const common = {
        volumeId: volume.externalId,
        volumeCapability: capabilityOf(usage),
        volumeContext: volume.context,
        publishContext,
      };
      const stagingTargetPath = staging() ? stagingOf(volume, usage) : '';
      if (stagingTargetPath) {
        await mkdir(stagingTargetPath, { recursive: true, mode: 0o700 });
        if (!(await isMount(stagingTargetPath))) {
          made.push('stage');
          await plugin().call(Node.NodeStageVolume, { ...common, stagingTargetPath: inPlugin(stagingTargetPath) });
        }
      }
      const targetPath = targetOf(volume, allocId, usage);
      await mkdir(join(targetPath, '..'), { recursive: true, mode: 0o700 });
      if (!(await isMount(targetPath))) {
        made.push('publish');
        await plugin().call(Node.NodePublishVolume, {
          ...common,
          stagingTargetPath: stagingTargetPath && inPlugin(stagingTargetPath),
          targetPath: inPlugin(targetPath),
          readonly: usage.readonly,
        });
      }
      claimsOf(volume, usage).add(allocId);
      return targetPath;
    },
    async unmount(volume, allocId, usage) {
      await unpublish(volume, allocId, usage);
      const left = claimsOf(volume, usage);
      left.delete(allocId);
      if (left.size > 0 || !staging()) return;
      made.push('unstage');
      const failure = await failureOf(
        plugin().call(Node.NodeUnstageVolume, {
          volumeId: volume.externalId,
          stagingTargetPath: inPlugin(stagingOf(volume, usage)),
        }),
      );
      if (failure && !isIgnorable(failure)) throw failure;
    },
    calls: () => made.splice(0),
  };
}

/** What Nomad takes for "gone already". */
export function isIgnorable({ code }: CallError): boolean {
  return code === 'NOT_FOUND';
}

export async function failureOf(work: Promise<unknown>): Promise<CallError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof CallError) return error;
    throw error;
  }
}

async function isMount(path: string): Promise<boolean> {
  return (await mountsBelow(path)).includes(path);
}

async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
