/** A controller that is killed after every single command of every call: the next one completes what was asked for, or deletes all of it. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type ControllerClient, controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { count, counted, countedSudo, installCounter } from './services/counted-commands.ts';
import { type NasDriver, nasConnection, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const byCount = [`cli: { sudoEnabled: true, paths: { sudo: ${countedSudo} } }`];

interface Scenario {
  /** What there is before. */
  readonly given?: (storage: ControllerClient) => Promise<unknown>;
  readonly call: (storage: ControllerClient) => Promise<unknown>;
  /** Checks what the repeated call answered; without it, only that it succeeds. */
  readonly right?: (answer: unknown, storage: ControllerClient) => Promise<void>;
  /** What is asked for instead of the call again, in another round. */
  readonly undo?: (storage: ControllerClient) => Promise<unknown>;
  /** Takes away what was given. */
  readonly end: (storage: ControllerClient) => Promise<unknown>;
}

const volumes = { detachedVolumesFromVolumes: 'true' };
const snapshots = { detachedVolumesFromSnapshots: 'true' };
const detached = { detachedSnapshots: 'true' };

const shared = async (_answer: unknown, storage: ControllerClient) => {
  const { status } = await storage.get('new');
  assert.equal(status?.volumeCondition?.abnormal, false, status?.volumeCondition?.message);
};

const making = (
  call: Scenario['call'],
  given?: Scenario['given'],
  end: Scenario['end'] = async () => {},
): Scenario => ({
  ...(given && { given }),
  call,
  right: shared,
  undo: (storage) => storage.remove('new'),
  async end(storage) {
    await storage.remove('new');
    await end(storage);
  },
});

const withSource = (storage: ControllerClient) => storage.create('source');
const withoutSource = (storage: ControllerClient) => storage.remove('source');
const withSnapshot = async (storage: ControllerClient) => {
  await storage.create('source');
  await storage.snapshot('source', 'snap');
};
const withoutSnapshot = async (storage: ControllerClient) => {
  await storage.removeSnapshot('source@snap');
  await storage.remove('source');
};
const withDetached = async (storage: ControllerClient) => {
  await storage.create('source');
  await storage.snapshot('source', 'snap', detached);
};
const withoutDetached = async (storage: ControllerClient) => {
  await storage.removeSnapshot('source/snap');
  await storage.remove('source');
};

const scenarios: Readonly<Record<string, Scenario>> = {
  'a new volume': making((storage) => storage.create('new')),
  'a clone of a volume': making((storage) => storage.create('new', { volume: 'source' }), withSource, withoutSource),
  'a copy of a volume': making(
    (storage) => storage.create('new', { volume: 'source', parameters: volumes }),
    withSource,
    withoutSource,
  ),
  'a clone of a snapshot': making(
    (storage) => storage.create('new', { snapshot: 'source@snap', bytes: 96 * mib }),
    withSnapshot,
    withoutSnapshot,
  ),
  'a copy of a snapshot': making(
    (storage) => storage.create('new', { snapshot: 'source@snap', parameters: snapshots }),
    withSnapshot,
    withoutSnapshot,
  ),
  'a clone of a detached snapshot': making(
    (storage) => storage.create('new', { snapshot: 'source/snap' }),
    withDetached,
    withoutDetached,
  ),
  'a snapshot': {
    given: withSource,
    call: (storage) => storage.snapshot('source', 'snap'),
    undo: (storage) => storage.removeSnapshot('source@snap'),
    end: withoutSnapshot,
  },
  'a detached snapshot': {
    given: withSource,
    call: (storage) => storage.snapshot('source', 'snap', detached),
    undo: (storage) => storage.removeSnapshot('source/snap'),
    end: withoutDetached,
  },
  'an expansion': {
    given: withSource,
    call: (storage) => storage.expand('source', 128 * mib),
    async right(_answer, storage) {
      assert.equal((await storage.get('source')).volume?.capacityBytes, 128 * mib);
    },
    end: withoutSource,
  },
  'the deletion of a detached snapshot': {
    given: withDetached,
    call: (storage) => storage.removeSnapshot('source/snap'),
    end: withoutSource,
  },
  'the deletion of a clone': {
    async given(storage) {
      await storage.create('source');
      await storage.create('new', { volume: 'source' });
    },
    call: (storage) => storage.remove('new'),
    end: withoutSource,
  },
  'the deletion of a volume': { given: withSource, call: withoutSource, end: async () => {} },
};

/** What is shared by commands of its own is looked at with all of them; of the others the ones that say nothing new are left out. */
const sweeps: Readonly<Partial<Record<NasDriver, readonly string[]>>> = {
  nfs: Object.keys(scenarios),
  iscsi: ['a new volume', 'a clone of a snapshot', 'the deletion of a volume'],
  nvmeof: ['a new volume', 'the deletion of a volume'],
};

describe('a controller of ZFS volumes, killed after every command', { skip: noGuests, timeout: 1_190_000 }, () => {
  let guest: Guest;
  before(async () => {
    guest = await boot('zfskill');
    await startZfsNas(guest);
    await installCounter(guest);
  });
  after(() => guest?.down());

  for (const [driver, names] of Object.entries(sweeps)) {
    describe(driver, () => {
      let witness: Switchboard;
      let victim: Switchboard;
      const startVictim = () =>
        startSwitchboard(guest, {
          config: nasConnection(guest, driver as NasDriver, { zfs: byCount }),
          name: 'victim',
        });
      before(async () => {
        witness = await startSwitchboard(guest, { config: nasConnection(guest, driver as NasDriver), name: 'witness' });
        victim = await startVictim();
      });
      after(async () => {
        await witness?.stop();
        await victim?.stop();
      });
      const storage = controllerClient(() => witness);
      const counting = controllerClient(() => victim);

      for (const name of names) {
        test(name, async (t) => {
          const { given, call, right, undo, end } = scenarios[name] as Scenario;
          let rounds = 0;
          for (const then of undo ? (['again', 'undone'] as const) : (['again'] as const)) {
            for (let after = 1, isOver = false; !isOver; after++) {
              await given?.(storage);
              await count(guest, victim.pid, after);
              const answer = await call(counting).catch((error: Error) => error);
              const { killed, commands } = await counted(guest);
              isOver = !killed;
              if (killed) victim = await startVictim();
              else assert.ok(!(answer instanceof Error), `${answer}`);
              const where = `killed after ${after} of\n${commands}`;
              try {
                if (then === 'undone') await undo?.(storage);
                else await right?.(await call(storage), storage);
                if (then === 'again' && !right) await call(storage);
                if (right === shared && then === 'again' && driver === 'nfs') {
                  assert.equal(await guest.run('stat -c %a /tank/nfs/v/new'), '777\n');
                }
                await end(storage);
                assert.deepEqual(await storedThings(guest), []);
              } catch (error) {
                throw new Error(`${then}, ${where}`, { cause: error });
              }
              rounds++;
            }
          }
          t.diagnostic(`${rounds} rounds`);
        });
      }
    });
  }
});
