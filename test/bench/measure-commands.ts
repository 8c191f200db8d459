/** The programs that a plugin starts for each call. */
import { mkdir, mkdtemp } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Say } from '../../scripts/executable/tools.ts';
import { services } from '../../src/generated/services.js';
import { countExecs } from './exec-counter.ts';
import { creation, type Session, volumeCapability } from './session.ts';

const { Controller, Identity, Node } = services;

/** Programs started for one call, by the call's name; each is named as often as it was started. */
export type Commands = ReadonlyMap<string, readonly string[]>;

/** Makes every call that orchestrators make once, after a first time that does not count. Undefined when it cannot be told. */
export async function measureCommands(session: Session, folder: string, say: Say): Promise<Commands | undefined> {
  const { pid } = session.plugin;
  if (pid === undefined) return undefined;
  const place = await mkdtemp(join(folder, 'commands-'));
  await lifeOfVolume(session, join(place, 'first'), async (_name, work) => work());
  const counter = await countExecs(pid, join(place, 'trace'), say);
  if (counter === undefined) return undefined;
  const commands = new Map<string, readonly string[]>();
  try {
    await lifeOfVolume(session, join(place, 'second'), async (name, work) => {
      const answer = await work();
      commands.set(
        name,
        (await counter.take()).map((path) => basename(path)),
      );
      return answer;
    });
  } finally {
    await counter.stop();
  }
  return commands;
}

type Watch = <T>(name: string, work: () => Promise<T>) => Promise<T>;

async function lifeOfVolume({ client, subject }: Session, folder: string, watch: Watch): Promise<void> {
  const stagingTargetPath = join(folder, 'staging');
  const targetPath = join(folder, 'target');
  await mkdir(stagingTargetPath, { recursive: true });
  const parameters = { ...subject.parameters };
  await watch('Probe', () => client.call(Identity.Probe, {}));
  await watch('NodeGetInfo', () => client.call(Node.NodeGetInfo, {}));
  await watch('GetCapacity', () => client.call(Controller.GetCapacity, { parameters }));
  const { volume } = await watch('CreateVolume', () =>
    client.call(Controller.CreateVolume, creation(subject, `commands-${process.pid}`)),
  );
  const { volumeId = '', volumeContext = {} } = volume ?? {};
  const staged = { volumeId, volumeContext, stagingTargetPath, volumeCapability };
  await watch('NodeStageVolume', () => client.call(Node.NodeStageVolume, staged));
  await watch('NodePublishVolume', () => client.call(Node.NodePublishVolume, { ...staged, targetPath }));
  await watch('NodeGetVolumeStats', () => client.call(Node.NodeGetVolumeStats, { volumeId, volumePath: targetPath }));
  await watch('NodeUnpublishVolume', () => client.call(Node.NodeUnpublishVolume, { volumeId, targetPath }));
  await watch('NodeUnstageVolume', () => client.call(Node.NodeUnstageVolume, { volumeId, stagingTargetPath }));
  await watch('DeleteVolume', () => client.call(Controller.DeleteVolume, { volumeId }));
}
