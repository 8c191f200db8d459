/** One plugin under load: a client, and volumes of its own. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type * as csi from '../../src/generated/csi.js';
import type { Init } from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { type BenchClient, connect } from './client.ts';
import type { Plugin, Subject } from './subject.ts';

const { Controller, Identity, Node } = services;

export interface Session {
  readonly subject: Subject;
  readonly plugin: Plugin;
  readonly client: BenchClient;
  /** As many staged volumes as operations at a time. */
  volume(worker: number): StagedVolume;
  /** Has `count` volumes staged. */
  stage(count: number): Promise<void>;
  /** Unstages and deletes all volumes, and closes the connection. */
  close(): Promise<void>;
}

export interface StagedVolume {
  readonly volumeId: string;
  readonly volumeContext: Record<string, string>;
  readonly stagingTargetPath: string;
  readonly targetPath: string;
}

export const volumeCapability = { mount: {}, accessMode: { mode: 1 } } as const satisfies Init<csi.VolumeCapability>;

const gibibyte = 2 ** 30;

/** What CreateVolume is asked. */
export const creation = (subject: Subject, name: string) => ({
  name,
  capacityRange: { requiredBytes: gibibyte, limitBytes: 0 },
  volumeCapabilities: [volumeCapability],
  parameters: { ...subject.parameters },
});

/** Connects. Rejects unless the plugin says that it is ready. */
export async function openSession(subject: Subject, plugin: Plugin, folder: string): Promise<Session> {
  const client = connect(plugin.endpoint);
  await client.call(Identity.Probe, {});
  const volumes: StagedVolume[] = [];
  return {
    subject,
    plugin,
    client,
    volume(worker) {
      const volume = volumes[worker];
      if (volume === undefined) throw new Error(`no volume is staged for worker ${worker}`);
      return volume;
    },
    async stage(count) {
      while (volumes.length < count) volumes.push(await stageVolume(client, subject, folder, volumes.length));
    },
    async close() {
      for (const volume of volumes.splice(0)) await removeVolume(client, volume);
      client.close();
    },
  };
}

async function stageVolume(
  client: BenchClient,
  subject: Subject,
  folder: string,
  number: number,
): Promise<StagedVolume> {
  const { volume } = await client.call(Controller.CreateVolume, creation(subject, `staged-${process.pid}-${number}`));
  const { volumeId = '', volumeContext = {} } = volume ?? {};
  const stagingTargetPath = join(folder, 'staging', String(number));
  const targetPath = join(folder, 'target', String(number));
  // Orchestrators make the staging folder; the target is the plugin's to make.
  await mkdir(stagingTargetPath, { recursive: true });
  await mkdir(join(folder, 'target'), { recursive: true });
  await client.call(Node.NodeStageVolume, { volumeId, volumeContext, stagingTargetPath, volumeCapability });
  return { volumeId, volumeContext, stagingTargetPath, targetPath };
}

async function removeVolume(client: BenchClient, volume: StagedVolume): Promise<void> {
  const { volumeId, stagingTargetPath, targetPath } = volume;
  await client.call(Node.NodeUnstageVolume, { volumeId, stagingTargetPath });
  await client.call(Controller.DeleteVolume, { volumeId });
  await rm(targetPath, { recursive: true, force: true });
}
