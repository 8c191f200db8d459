/** Connection files that change while calls run, in all the ways in which files are changed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, rename, rm, stat, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { CallError } from '../../src/core/errors.ts';
import { aCall, aSpec, failsWith, minimal, type Switchboard, switchboard } from '../unit/proxy-stand-ins.ts';

const call = aCall();
const text = (content: string) => `driver: memory\nmemory: { text: "${content}" }\n`;

/** What a new volume says about the driver that made it. */
async function answer({ proxy }: Switchboard, connection = 'nas'): Promise<string | undefined> {
  const volume = await proxy.volumes?.create(call, aSpec('v', { parameters: { connection } }));
  return volume?.context.text;
}

/** Blocks every operation until `open` is called; `reached` resolves when one is there. */
function gate({ world }: Switchboard) {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  world.before = async () => {
    reached.resolve();
    await opened.promise;
  };
  return {
    reached: reached.promise,
    open() {
      world.before = async () => {};
      opened.resolve();
    },
  };
}

/** Resolves when the next driver is closed. */
function nextClose({ world }: Switchboard): Promise<void> {
  return new Promise((resolve) => {
    world.close = async () => resolve();
  });
}

const ways: Readonly<Record<string, (folder: string, content: string) => Promise<void>>> = {
  async 'an edit in place'(folder, content) {
    await writeFile(join(folder, 'nas.yaml'), content);
  },
  async 'a rename over it'(folder, content) {
    await writeFile(join(folder, '.nas.yaml.new'), content);
    await rename(join(folder, '.nas.yaml.new'), join(folder, 'nas.yaml'));
  },
  async 'removal and creation'(folder, content) {
    await unlink(join(folder, 'nas.yaml'));
    await writeFile(join(folder, 'nas.yaml'), content);
  },
  async 'an edit that leaves size and modification time as they were'(folder, content) {
    const file = join(folder, 'nas.yaml');
    const before = await stat(file);
    await writeFile(file, content);
    await utimes(file, before.atime, before.mtime);
  },
};

for (const [way, change] of Object.entries(ways)) {
  test(`${way} gives a new driver; the old one is closed when its calls have ended`, async (t) => {
    const board = await switchboard(t, { nas: text('old') });
    const { open, reached } = gate(board);
    const inFlight = answer(board);
    await reached;
    await change(board.folder, text('new'));
    board.world.before = async () => {};
    const other = await board.proxy.volumes?.create(call, aSpec('w'));
    assert.equal(other?.context.text, 'new');
    assert.deepEqual(
      board.world.made.map((one) => one.closed),
      [0, 0],
    );
    assert.equal(board.proxy.connections()[0]?.retiring, 1);
    const closed = nextClose(board);
    open();
    assert.equal(await inFlight, 'old');
    await closed;
    assert.deepEqual(
      board.world.made.map((one) => one.closed),
      [1, 0],
    );
    assert.equal(await answer(board), 'new');
    assert.equal(board.proxy.connections()[0]?.retiring, 0);
    assert.equal(board.world.made.length, 2);
  });
}

/** A folder as Kubernetes mounts it: `nas.yaml` → `..data/nas.yaml`, `..data` → a folder named by the time. */
async function kubernetesVersion(
  folder: string,
  version: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  await mkdir(join(folder, version));
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, version, name), content);
  await symlink(version, join(folder, '..data_tmp'));
  await rename(join(folder, '..data_tmp'), join(folder, '..data'));
}

test('the switch of symbolic links with which Kubernetes updates a mounted folder', async (t) => {
  const board = await switchboard(t, {});
  const { folder } = board;
  await kubernetesVersion(folder, '..1', { 'nas.yaml': text('one'), 'san.yaml': text('same') });
  for (const name of ['nas', 'san']) await symlink(`..data/${name}.yaml`, join(folder, `${name}.yaml`));
  assert.equal(await answer(board), 'one');
  assert.equal(await answer(board, 'san'), 'same');
  await kubernetesVersion(folder, '..2', { 'nas.yaml': text('two'), 'san.yaml': text('same') });
  await rm(join(folder, '..1'), { recursive: true });
  assert.equal(await answer(board), 'two');
  assert.equal(await answer(board, 'san'), 'same');
  assert.equal(board.world.made.length, 3, 'a file with the same content keeps its driver');
  assert.deepEqual(
    (await board.proxy.volumes?.list?.(call, {}))?.entries.map((one) => one.volume.id),
    ['v:nas/v', 'v:san/v'],
  );
});

test('a broken file keeps the last good driver, says so once for each content, and is repaired by itself', async (t) => {
  const board = await switchboard(t, { nas: text('good') });
  assert.equal(await answer(board), 'good');
  const warnings = () => board.log.filter((line) => line.includes('cannot be used')).length;
  for (const broken of ['driver: [', 'driver: nonsense', '', 'driver: memory\nmemory: { refuse: "no such pool" }']) {
    const before = warnings();
    await board.write('nas', broken);
    for (let index = 0; index < 3; index++) assert.equal(await answer(board), 'good');
    assert.equal(warnings(), before + 1, broken);
    const [status] = board.proxy.connections();
    assert.equal(status?.state, 'broken');
    assert.ok(status?.problem);
  }
  await board.write('nas', text('repaired'));
  assert.equal(await answer(board), 'repaired');
  assert.equal(board.proxy.connections()[0]?.state, 'ok');
  assert.equal(board.proxy.connections()[0]?.problem, undefined);
  await board.write('nas', 'driver: [');
  await answer(board);
  await board.write('nas', text('repaired'));
  assert.equal(await answer(board), 'repaired');
  assert.equal(board.proxy.connections()[0]?.state, 'ok');
});

test('a file that was never good fails its own calls until it is repaired', async (t) => {
  const board = await switchboard(t, {
    nas: 'driver: memory\nmemory: { lacks: 7 }',
    refusing: 'driver: memory\nmemory: { refuse: "pool?" }',
    ok: text('fine'),
  });
  await assert.rejects(
    answer(board),
    failsWith('FAILED_PRECONDITION', /^connection "nas": .*nas\.yaml:2:\d+: .*memory\.lacks/),
  );
  await assert.rejects(answer(board, 'refusing'), failsWith('FAILED_PRECONDITION', /^connection "refusing": pool\?$/));
  assert.equal(await answer(board, 'ok'), 'fine');
  await board.write('nas', text('now'));
  assert.equal(await answer(board), 'now');
});

test('odd things under a connection’s name hurt nobody else', async (t) => {
  const board = await switchboard(t, { ok: text('fine') });
  const { folder } = board;
  await mkdir(join(folder, 'folder.yaml'));
  await promisify(execFile)('mkfifo', [join(folder, 'pipe.yaml')]);
  await symlink('loop.yaml', join(folder, 'loop.yaml'));
  await symlink('/nonexistent', join(folder, 'dangling.yaml'));
  await writeFile(join(folder, 'large.yaml'), `driver: memory\n# ${'x'.repeat(2 * 1024 * 1024)}\n`);
  await writeFile(join(folder, 'bytes.yaml'), Buffer.from([0xff, 0xfe, 0x00]));
  for (const name of ['folder', 'pipe', 'loop', 'large', 'bytes']) {
    await assert.rejects(
      answer(board, name),
      failsWith('FAILED_PRECONDITION', new RegExp(`^connection "${name}": `)),
      name,
    );
  }
  await assert.rejects(answer(board, 'dangling'), failsWith('INVALID_ARGUMENT', /there is no connection "dangling"/));
  assert.equal(await answer(board, 'ok'), 'fine');
});

test('a removed file takes its connection away, and only that; put back, it works again', async (t) => {
  const board = await switchboard(t, { nas: text('old'), san: text('other') });
  await answer(board);
  const { open, reached } = gate(board);
  const inFlight = answer(board);
  await reached;
  await unlink(join(board.folder, 'nas.yaml'));
  const gone = failsWith('FAILED_PRECONDITION', /^connection "nas": there is no file/);
  await assert.rejects(async () => board.proxy.volumes?.delete(call, 'v:nas/v'), gone);
  await assert.rejects(answer(board), failsWith('INVALID_ARGUMENT', /no connection "nas"; known are san/));
  assert.equal(board.world.made[0]?.closed, 0);
  const closed = nextClose(board);
  open();
  assert.equal(await inFlight, 'old');
  await closed;
  assert.equal(await answer(board, 'san'), 'other');
  assert.deepEqual(
    board.proxy.connections().map((one) => one.name),
    ['san'],
  );
  await board.write('nas', text('back'));
  assert.equal(await answer(board), 'back');
});

test('the last good driver of a file that is broken and then removed is closed', async (t) => {
  const board = await switchboard(t, { nas: text('good') });
  await answer(board);
  await board.write('nas', 'driver: [');
  await answer(board);
  await unlink(join(board.folder, 'nas.yaml'));
  const closed = nextClose(board);
  await assert.rejects(answer(board), failsWith('INVALID_ARGUMENT'));
  await closed;
  assert.deepEqual(board.proxy.connections(), []);
});

test('a burst of first uses loads the file once', async (t) => {
  const board = await switchboard(t, { nas: text('one') });
  await Promise.all(Array.from({ length: 50 }, (_, index) => board.proxy.volumes?.create(call, aSpec(`v${index}`))));
  assert.equal(board.world.made.length, 1);
  assert.equal(board.world.volumes.get('nas')?.size, 50);
});

test('work that outlives its caller keeps its driver open, and a retry on the next driver joins it', async (t) => {
  const board = await switchboard(t, { nas: text('old') });
  const { open, reached } = gate(board);
  const caller = new AbortController();
  const left = board.proxy.volumes?.create(aCall(caller.signal), aSpec('v'));
  await reached;
  caller.abort(new CallError('DEADLINE_EXCEEDED', 'too slow'));
  await assert.rejects(async () => left, failsWith('DEADLINE_EXCEEDED'));
  await board.write('nas', text('new'));
  const retry = answer(board);
  await assert.rejects(
    async () => board.proxy.volumes?.delete(call, 'v:nas/v'),
    failsWith('ABORTED', /CreateVolume v/),
  );
  assert.deepEqual(
    board.world.made.map((one) => one.closed),
    [0, 0],
  );
  const closed = nextClose(board);
  open();
  assert.equal(await retry, 'old');
  await closed;
  assert.deepEqual(board.world.asked, ['nas CreateVolume v']);
  assert.deepEqual(
    board.world.made.map((one) => one.closed),
    [1, 0],
  );
});

test('a caller who leaves while the file is being read leaves nothing behind', async (t) => {
  const board = await switchboard(t, { nas: text('one') });
  const caller = new AbortController();
  const left = board.proxy.volumes?.create(aCall(caller.signal), aSpec('v'));
  caller.abort(new CallError('CANCELLED', 'gone'));
  await assert.rejects(async () => left, failsWith('CANCELLED'));
  assert.equal(await answer(board), 'one');
  const closed = nextClose(board);
  await board.write('nas', text('two'));
  assert.equal(await answer(board), 'two');
  await closed;
});

test('without caching every use makes its own driver and closes it', async (t) => {
  const board = await switchboard(t, { nas: text('one') }, { cacheTimeoutMinutes: 0 });
  for (let index = 0; index < 3; index++) assert.equal(await answer(board), 'one');
  assert.deepEqual(
    board.world.made.map((one) => one.closed),
    [1, 1, 1],
  );
  await board.write('nas', text('two'));
  assert.equal(await answer(board), 'two');
});

test('a driver that was not used for the time of the cache is closed, and made again when needed', async (t) => {
  const board = await switchboard(t, { nas: text('one') }, { cacheTimeoutMinutes: 0.0001 });
  const closed = nextClose(board);
  await answer(board);
  // The timer does not keep the process: something else has to.
  const alive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(alive));
  await closed;
  assert.equal(board.proxy.connections()[0]?.state, 'idle');
  assert.equal(await answer(board), 'one');
  assert.equal(board.world.made.length, 2);
});

test('for ever is for ever: no timer is set', async (t) => {
  const board = await switchboard(t, { nas: text('one') }, { cacheTimeoutMinutes: -1 });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await answer(board);
  t.mock.timers.tick(2 ** 31);
  assert.deepEqual(
    board.world.made.map((one) => one.closed),
    [0],
  );
});

test('closing ends what runs, closes every driver, and refuses new calls', async (t) => {
  const board = await switchboard(t, { nas: text('one'), san: text('two') });
  await answer(board, 'san');
  const reached = Promise.withResolvers<void>();
  board.world.before = (_connection, _operation, { signal }) => {
    reached.resolve();
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  const ended = assert.rejects(answer(board), failsWith('UNAVAILABLE', /stopping/));
  await reached.promise;
  await board.proxy.close();
  await ended;
  assert.deepEqual(
    board.world.made.map((one) => one.closed),
    [1, 1],
  );
  await assert.rejects(answer(board), failsWith('UNAVAILABLE', /stopping/));
});

test('a storm of edits under a storm of calls: every call succeeds and every driver but the last is closed once', async (t) => {
  const board = await switchboard(t, { nas: text('0'), still: text('calm') });
  let over = false;
  const workers = Array.from({ length: 8 }, async (_, worker) => {
    for (let index = 0; !over; index++) {
      const volume = await board.proxy.volumes?.create(call, aSpec(`w${worker}-${index % 5}`));
      assert.match(volume?.context.text ?? '', /^\d+$/);
      await board.proxy.volumes?.delete(call, volume?.id ?? '');
      assert.equal(await answer(board, 'still'), 'calm');
    }
  });
  const renameOver = ways['a rename over it'] as (folder: string, content: string) => Promise<void>;
  await editRepeatedly(t, board, async (round) => {
    await renameOver(board.folder, round % 3 === 1 ? 'driver: [' : text(String(round)));
  });
  over = true;
  await Promise.all(workers);
  await board.write('nas', text('999'));
  const closed = Promise.withResolvers<void>();
  const open = () => board.world.made.filter((one) => one.closed === 0).length;
  board.world.close = async () => {
    if (open() <= 2) closed.resolve();
  };
  assert.equal(await answer(board), '999');
  await closed.promise;
  assert.equal(open(), 2);
  assert.ok(board.world.made.every((one) => one.closed <= 1));
  assert.equal(board.world.made.filter((one) => one.environment.connection === 'still').length, 1);
});

/** Makes 60 edits, each after the calls have noticed something. */
async function editRepeatedly(
  t: TestContext,
  board: Switchboard,
  edit: (round: number) => Promise<void>,
): Promise<void> {
  for (let round = 1; round <= 60; round++) {
    await edit(round);
    await answer(board);
  }
  t.diagnostic(`${board.world.made.length} drivers made, ${board.world.asked.length} calls`);
}

test('a file that loads has its warnings in the log once', async (t) => {
  const board = await switchboard(t, { nas: `${minimal}colour: green\n` });
  await answer(board);
  await answer(board);
  assert.equal(board.log.filter((line) => line.includes('colour')).length, 1);
});
