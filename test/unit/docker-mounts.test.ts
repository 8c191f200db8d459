/** Who has a volume mounted: counted by caller, on disk, whatever is killed in between. */
import assert from 'node:assert/strict';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { CallError } from '../../src/core/errors.ts';
import type { VolumeDriver } from '../../src/frontends/docker/workshop.ts';
import { aCall, type World, world } from './docker-stand-in.ts';
import { failsWith } from './proxy-stand-ins.ts';

const call = aCall();

interface Bench {
  readonly w: World;
  readonly door: VolumeDriver;
  readonly target: string;
}

/** A world with the volume `data`, and what was done forgotten. */
async function withVolume(t: TestContext): Promise<Bench> {
  const w = await world(t);
  const door = w.open();
  await door.create(call, 'data', { connection: 'nas' });
  w.did.length = 0;
  return { w, door, target: join(w.folder, 'mnt/data/data') };
}

const up = ['attach v:nas/data node-1', 'stage v:nas/data', 'publish v:nas/data'];
const down = ['unpublish v:nas/data', 'unstage v:nas/data', 'let go of v:nas/data node-1'];

const recordsOf = async ({ folder }: World) => readdir(join(folder, 'state/mounts'));

describe('counting', () => {
  test('mounted for the first caller, unmounted for the last', async (t) => {
    const { w, door, target } = await withVolume(t);
    assert.equal(await door.path(call, 'data'), undefined);
    assert.equal(await door.mount(call, 'data', 'a'), target);
    assert.deepEqual(w.did.splice(0), up);
    assert.equal(await door.mount(call, 'data', 'b'), target);
    assert.deepEqual(w.did.splice(0), ['publish v:nas/data']);
    assert.equal(await door.path(call, 'data'), target);
    assert.equal((await door.get(call, 'data'))?.Mountpoint, target);
    assert.deepEqual(await door.list(call), [{ Name: 'data', Mountpoint: target }]);
    await door.unmount(call, 'data', 'a');
    assert.deepEqual(w.did.splice(0), []);
    await door.unmount(call, 'data', 'b');
    assert.deepEqual(w.did, down);
    assert.equal(await door.path(call, 'data'), undefined);
    assert.deepEqual([...w.mounted], []);
    assert.deepEqual(await recordsOf(w), []);
  });

  test('the same caller twice is one caller', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    await door.mount(call, 'data', 'a');
    await door.unmount(call, 'data', 'a');
    assert.deepEqual([...w.mounted], []);
  });

  test('a caller that has not mounted it may unmount it, to no effect', async (t) => {
    const { w, door } = await withVolume(t);
    await door.unmount(call, 'data', 'x');
    await door.mount(call, 'data', 'a');
    await door.unmount(call, 'data', 'x');
    assert.equal(w.mounted.size, 2);
    await door.unmount(call, 'data', 'a');
    await door.unmount(call, 'data', 'a');
    assert.equal(w.mounted.size, 0);
  });

  test('a silent back end does not keep a second container from a volume that is mounted', async (t) => {
    const { w, door, target } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    w.down.add('nas');
    assert.equal(await door.mount(call, 'data', 'b'), target);
    await assert.rejects(w.open().mount(call, 'other', 'b'), failsWith('UNAVAILABLE'));
  });

  test('what is staged and broken is mounted anew for the next caller', async (t) => {
    const { w, door, target } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    w.mounted.delete(target.replace(/data$/, 'staging'));
    w.did.length = 0;
    await door.mount(call, 'data', 'b');
    assert.deepEqual(w.did, ['publish v:nas/data', ...up]);
  });

  test('any order of calls and restarts: mounted exactly while somebody has it', async (t) => {
    const step = fc.record({
      what: fc.constantFrom('mount', 'unmount', 'restart'),
      id: fc.constantFrom('a', 'b', 'c'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { w, target, ...first } = await withVolume(t);
        let { door } = first;
        const expected = new Set<string>();
        for (const { what, id } of steps) {
          if (what === 'restart') {
            door.leftovers.stop();
            door = w.open();
            await door.leftovers.takeUpAll();
          } else if (what === 'mount') {
            await door.mount(call, 'data', id);
            expected.add(id);
          } else {
            await door.unmount(call, 'data', id);
            expected.delete(id);
          }
          assert.equal(await door.path(call, 'data'), expected.size > 0 ? target : undefined);
          assert.equal(w.mounted.has(target), expected.size > 0);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('after a kill', () => {
  test('a new process goes on with the callers of the old one', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    await door.mount(call, 'data', 'b');
    const next = w.open();
    await next.leftovers.takeUpAll();
    await next.unmount(call, 'data', 'a');
    assert.equal(w.mounted.size, 2);
    await next.unmount(call, 'data', 'b');
    assert.equal(w.mounted.size, 0);
  });

  test('mounts that went with the old process come back with the next caller', async (t) => {
    const { w, door, target } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    w.mounted.clear();
    const next = w.open();
    assert.equal(await next.path(call, 'data'), undefined);
    w.did.length = 0;
    await next.mount(call, 'data', 'b');
    assert.deepEqual(w.did, up);
    await next.unmount(call, 'data', 'b');
    assert.ok(w.mounted.has(target), 'the first caller still has it');
    await next.unmount(call, 'data', 'a');
    assert.equal(w.mounted.size, 0);
  });

  for (const point of ['attach', 'stage', 'publish']) {
    test(`killed in the middle of mounting, at ${point}: the next process takes it away`, async (t) => {
      const { w, door } = await withVolume(t);
      await killedAt(w, door, point, () => door.mount(call, 'data', 'a'));
      await w.open().leftovers.takeUpAll();
      assert.deepEqual(w.did, down);
      assert.equal(w.mounted.size, 0);
      assert.deepEqual(await recordsOf(w), []);
    });
  }

  for (const point of ['unpublish', 'unstage', 'let go']) {
    test(`killed in the middle of unmounting, at ${point}: the next process ends it`, async (t) => {
      const { w, door } = await withVolume(t);
      await door.mount(call, 'data', 'a');
      await killedAt(w, door, point, () => door.unmount(call, 'data', 'a'));
      await w.open().leftovers.takeUpAll();
      assert.deepEqual(w.did, down);
      assert.equal(w.mounted.size, 0);
      assert.deepEqual(await recordsOf(w), []);
    });
  }

  test('after a reboot nobody has it any more, and the storage is let go of', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    w.mounted.clear();
    w.boot = 'boot-2';
    w.did.length = 0;
    const next = w.open();
    await next.leftovers.takeUpAll();
    assert.deepEqual(w.did.splice(0), down);
    await next.mount(call, 'data', 'b');
    assert.deepEqual(w.did, up);
    await next.unmount(call, 'data', 'b');
    assert.equal(w.mounted.size, 0);
  });

  test('a container that is faster after a reboot than the cleaning up', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    w.mounted.clear();
    w.boot = 'boot-2';
    const next = w.open();
    await next.mount(call, 'data', 'b');
    await next.leftovers.takeUpAll();
    assert.equal(w.mounted.size, 2);
    await next.unmount(call, 'data', 'b');
    assert.equal(w.mounted.size, 0);
  });

  test('a lost record: the mount is found by its place', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    await rm(join(w.folder, 'state/mounts'), { recursive: true });
    await w.open().unmount(call, 'data', 'a');
    assert.equal(w.mounted.size, 0);
  });

  test('a damaged record is no licence to unmount', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    await writeFile(join(w.folder, 'state/mounts/data.json'), '{"name":"da');
    const next = w.open();
    await assert.rejects(next.unmount(call, 'data', 'a'), failsWith('DATA_LOSS', /data\.json/));
    await next.leftovers.takeUpAll();
    assert.equal(w.mounted.size, 2);
  });

  test('a record that was being written is the one before it', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    await writeFile(join(w.folder, 'state/mounts/data.json.new'), '{"name":"da');
    await w.open().unmount(call, 'data', 'a');
    assert.equal(w.mounted.size, 0);
  });
});

/** The operation comes to this step and no further, and neither does anything else of this process. */
async function killedAt(w: World, door: VolumeDriver, point: string, work: () => Promise<unknown>): Promise<void> {
  w.before = async (operation) => {
    if (operation.startsWith(point)) throw new Error('killed');
  };
  door.leftovers.stop();
  await assert.rejects(work(), /killed/);
  w.before = async () => {};
  w.did.length = 0;
}

describe('callers that leave', () => {
  test('before it is mounted: it is mounted for nobody, and taken away', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { w, door } = await withVolume(t);
    const leaver = new AbortController();
    w.before = async (operation) => {
      if (operation.startsWith('publish')) leaver.abort(new CallError('DEADLINE_EXCEEDED', 'the caller has left'));
    };
    await assert.rejects(door.mount(aCall(leaver.signal), 'data', 'a'), failsWith('DEADLINE_EXCEEDED'));
    assert.equal(w.mounted.size, 2);
    w.before = async () => {};
    t.mock.timers.tick(1000);
    await eventually(() => w.did.at(-1) === down.at(-1));
    assert.equal(w.mounted.size, 0);
  });

  test('and ask again under the same id: that mount stays', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { w, door } = await withVolume(t);
    const leaver = new AbortController();
    w.before = async (operation) => {
      if (operation.startsWith('publish')) leaver.abort(new CallError('DEADLINE_EXCEEDED', 'the caller has left'));
    };
    const first = door.mount(aCall(leaver.signal), 'data', 'a');
    const again = door.mount(call, 'data', 'a');
    await assert.rejects(first, failsWith('DEADLINE_EXCEEDED'));
    await again;
    t.mock.timers.tick(1000);
    await door.get(call, 'data');
    assert.equal(w.mounted.size, 2);
    await door.unmount(call, 'data', 'a');
    assert.equal(w.mounted.size, 0);
  });

  test('who waits behind another and leaves has changed nothing', async (t) => {
    const { w, door } = await withVolume(t);
    const gate = Promise.withResolvers<void>();
    w.before = async (operation) => {
      if (operation.startsWith('stage')) await gate.promise;
    };
    const first = door.mount(call, 'data', 'a');
    const leaver = new AbortController();
    const second = door.mount(aCall(leaver.signal), 'data', 'b');
    leaver.abort(new CallError('DEADLINE_EXCEEDED', 'gone'));
    await assert.rejects(second, failsWith('DEADLINE_EXCEEDED'));
    gate.resolve();
    await first;
    await door.unmount(call, 'data', 'a');
    assert.equal(w.mounted.size, 0);
  });
});

describe('failures', () => {
  test('a volume that cannot be mounted is taken away again, and tried again until that works', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { w, door } = await withVolume(t);
    w.before = async (operation) => {
      if (/^(publish|unstage)/.test(operation)) throw new CallError('UNAVAILABLE', 'not now');
    };
    await assert.rejects(door.mount(call, 'data', 'a'), failsWith('UNAVAILABLE', /not now/));
    t.mock.timers.tick(1000);
    await eventually(() => w.did.at(-1) === 'unstage v:nas/data');
    assert.equal(w.mounted.size, 1);
    w.before = async () => {};
    await eventually(async () => {
      t.mock.timers.tick(5000);
      return (await recordsOf(w)).length === 0;
    });
    assert.equal(w.mounted.size, 0);
  });

  test('a busy volume says so, stays known, and goes later', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    w.before = async (operation) => {
      if (operation.startsWith('unpublish')) throw new CallError('FAILED_PRECONDITION', 'it is in use');
    };
    await assert.rejects(door.unmount(call, 'data', 'a'), failsWith('FAILED_PRECONDITION', /in use/));
    w.before = async () => {};
    await eventually(async () => {
      t.mock.timers.tick(1000);
      return (await recordsOf(w)).length === 0;
    });
    assert.equal(w.mounted.size, 0);
  });

  test('a volume that is gone from its storage cannot be mounted', async (t) => {
    const { w, door } = await withVolume(t);
    w.volumes.get('nas')?.clear();
    await assert.rejects(door.mount(call, 'data', 'a'), failsWith('NOT_FOUND'));
    assert.deepEqual(w.did, []);
  });
});

describe('two names of one volume', () => {
  test('are not mounted at the same time', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'a');
    await assert.rejects(door.mount(call, 'nas/data', 'b'), failsWith('FAILED_PRECONDITION', /its other name "data"/));
    await door.unmount(call, 'data', 'a');
    await door.mount(call, 'nas/data', 'b');
    await door.unmount(call, 'nas/data', 'b');
    assert.equal(w.mounted.size, 0);
  });
});

describe('removal', () => {
  test('takes away what a killed dockerd left mounted', async (t) => {
    const { w, door } = await withVolume(t);
    await door.mount(call, 'data', 'of a container that is gone');
    await door.remove(call, 'data');
    assert.deepEqual(w.did.slice(-4), [...down, 'delete v:nas/data']);
    assert.equal(w.mounted.size, 0);
    assert.deepEqual(await recordsOf(w), []);
  });
});

/** Awaits work that was started in the background and has no promise to await. */
async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let turns = 0; turns < 10_000; turns++) {
    if (await check()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.fail('it never came');
}
