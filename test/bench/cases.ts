/** What is measured: the calls that orchestrators make often, alone or as the pair that leaves nothing behind. */
import { services } from '../../src/generated/services.js';
import { creation, type Session, volumeCapability } from './session.ts';

const { Controller, Identity, Node } = services;

export interface Case {
  readonly name: string;
  /** Calls per operation. */
  readonly calls: number;
  /** One operation. Workers are numbered from zero and never overlap with themselves. */
  readonly run: (session: Session, worker: number) => Promise<unknown>;
}

let created = 0;

export const cases: readonly Case[] = [
  { name: 'Probe', calls: 1, run: ({ client }) => client.call(Identity.Probe, {}) },
  { name: 'NodeGetInfo', calls: 1, run: ({ client }) => client.call(Node.NodeGetInfo, {}) },
  {
    name: 'GetCapacity',
    calls: 1,
    run: ({ client, subject }) =>
      client.call(Controller.GetCapacity, {
        volumeCapabilities: [volumeCapability],
        parameters: { ...subject.parameters },
      }),
  },
  { name: 'Create+Delete', calls: 2, run: createAndDelete },
  { name: 'Publish+Unpublish', calls: 2, run: publishAndUnpublish },
];

async function createAndDelete({ client, subject }: Session): Promise<void> {
  const { volume } = await client.call(Controller.CreateVolume, creation(subject, `bench-${process.pid}-${created++}`));
  await client.call(Controller.DeleteVolume, { volumeId: volume?.volumeId ?? '' });
}

async function publishAndUnpublish(session: Session, worker: number): Promise<void> {
  const { client } = session;
  const { volumeId, volumeContext, stagingTargetPath, targetPath } = session.volume(worker);
  await client.call(Node.NodePublishVolume, {
    volumeId,
    volumeContext,
    stagingTargetPath,
    targetPath,
    volumeCapability,
  });
  await client.call(Node.NodeUnpublishVolume, { volumeId, targetPath });
}

/** Runs about `calls` calls of all cases in turn, 8 operations at a time. */
export async function mixedCalls(session: Session, calls: number): Promise<void> {
  const workers = 8;
  await session.stage(workers);
  const perTurn = cases.reduce((sum, one) => sum + one.calls, 0);
  let turns = Math.ceil(calls / perTurn);
  const work = async (worker: number) => {
    while (turns-- > 0) for (const one of cases) await one.run(session, worker);
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
}
