/** Volumes by name: what Docker may take for missing, and what it must never. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { aCall, world } from './docker-stand-in.ts';
import { failsWith } from './proxy-stand-ins.ts';

const call = aCall();

describe('create', () => {
  test('options reach the driver; size and source are no parameters', async (t) => {
    const w = await world(t);
    const door = w.open();
    const given = {
      connection: 'nas',
      size: '10Mi',
      fstype: 'xfs',
      mountFlags: 'noatime,nodev',
      access: 'rwx',
      tier: 'gold',
    };
    await door.create(call, 'data', given);
    const [spec] = w.specs;
    assert.equal(spec?.name, 'data');
    assert.equal(spec.capacity.requiredBytes, 10 * 2 ** 20);
    assert.deepEqual(spec.parameters, {
      connection: 'nas',
      fsType: 'xfs',
      mountFlags: 'noatime,nodev',
      access: 'rwx',
      tier: 'gold',
      'switchboard/door': 'docker',
    });
    assert.deepEqual(spec.capabilities, [
      {
        type: 'mount',
        mode: 'MULTI_NODE_MULTI_WRITER',
        fsType: 'xfs',
        mountFlags: ['noatime', 'nodev'],
        mountGroup: '',
      },
    ]);
  });

  test('defaults count where nothing is said, and a qualified name goes before the default connection', async (t) => {
    const w = await world(t);
    const door = w.open({ defaults: { connection: 'nas', size: '1Mi', tier: 'gold' } });
    await door.create(call, 'a', {});
    await door.create(call, 'b', { tier: 'iron', size: '2Mi' });
    await door.create(call, 'san/c', {});
    assert.deepEqual(w.did, ['create nas/a', 'create nas/b', 'create san/c']);
    assert.deepEqual(
      w.specs.map(({ parameters, capacity }) => [parameters.tier, capacity.requiredBytes]),
      [
        ['gold', 2 ** 20],
        ['iron', 2 ** 21],
        ['gold', 2 ** 20],
      ],
    );
    await assert.rejects(door.create(call, 'san/d', { connection: 'nas' }), failsWith('INVALID_ARGUMENT', /san.*nas/));
  });

  test('a volume of this name elsewhere is never hidden by a new one', async (t) => {
    const w = await world(t);
    const door = w.open({ defaults: { connection: 'nas' } });
    await door.create(call, 'data', { connection: 'san' });
    await assert.rejects(
      w.open().create(call, 'data', { connection: 'nas' }),
      failsWith('ALREADY_EXISTS', /san\/data/),
    );
    // On a node that does not know the volume, and by the default connection.
    await rm(join(w.folder, 'state'), { recursive: true });
    await assert.rejects(door.create(call, 'data', {}), failsWith('ALREADY_EXISTS', /san\/data/));
    // By its qualified name it is another volume.
    await door.create(call, 'nas/data', {});
    assert.deepEqual(w.did, ['create san/data', 'create nas/data']);
  });

  test('while a connection is silent, nothing is made by default: the name may be taken there', async (t) => {
    const w = await world(t);
    const door = w.open({ defaults: { connection: 'nas' } });
    w.down.add('san');
    await assert.rejects(door.create(call, 'data', {}), failsWith('UNAVAILABLE', /san.*-o connection=/));
    assert.deepEqual(w.did, []);
    await door.create(call, 'data', { connection: 'nas' });
    await door.create(call, 'nas/other', {});
    assert.deepEqual(w.did, ['create nas/data', 'create nas/other']);
  });

  test('a volume that a silent connection holds is not made anew on another', async (t) => {
    const w = await world(t);
    const door = w.open();
    await door.create(call, 'data', { connection: 'san' });
    w.down.add('san');
    await assert.rejects(door.create(call, 'data', { connection: 'nas' }), failsWith('ALREADY_EXISTS', /san\/data/));
  });

  test('repeated, it is the same volume with the time of the first', async (t) => {
    const w = await world(t);
    const door = w.open();
    await door.create(call, 'data', { connection: 'nas' });
    const first = await door.get(call, 'data');
    await door.create(call, 'data', { connection: 'nas' });
    assert.deepEqual(await door.get(call, 'data'), first);
  });

  test('from another volume by its name, and from a snapshot', async (t) => {
    const w = await world(t);
    const door = w.open({ defaults: { connection: 'nas' } });
    await door.create(call, 'old', {});
    await door.create(call, 'copy', { from: 'volume:old' });
    await door.create(call, 'restored', { from: 'snapshot:s:nas/old-monday' });
    assert.deepEqual(
      w.specs.slice(1).map((spec) => spec.source),
      [
        { type: 'volume', id: 'v:nas/old' },
        { type: 'snapshot', id: 's:nas/old-monday' },
      ],
    );
  });

  const refused: readonly (readonly [string, Record<string, string>, RegExp])[] = [
    ['a size that is none', { size: 'big' }, /option size: "big"/],
    ['an access mode that is none', { access: 'sometimes' }, /option access.*rwx/],
    ['a source that is none', { from: 'yesterday' }, /snapshot:ID or volume:NAME/],
    ['a mount flag that would mount something else', { mountFlags: 'remount' }, /option mountFlags/],
    ['a secret in the open', { 'secret.password': 'hunter2' }, /write @FILE/],
    ['a password in the open', { password: 'hunter2' }, /-o secret\.password=@FILE/],
    ['a word in two spellings', { fsType: 'xfs', fstype: 'ext4' }, /fsType is given twice/],
  ];
  for (const [what, options, message] of refused) {
    test(`refused: ${what}`, async (t) => {
      const w = await world(t);
      await assert.rejects(w.open().create(call, 'x', { connection: 'nas', ...options }), (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      });
      assert.deepEqual(w.did, []);
    });
  }
});

describe('secrets', () => {
  test('are read from their folder for each call, and never kept', async (t) => {
    const w = await world(t);
    const folder = join(w.folder, 'secrets');
    await mkdir(folder);
    await writeFile(join(folder, 'pw'), 'hunter2\n');
    const door = w.open({ secretsFolder: folder });
    await door.create(call, 'data', { connection: 'nas', 'secret.password': '@pw' });
    await door.mount(call, 'data', 'a');
    await writeFile(join(folder, 'pw'), 'changed');
    await door.unmount(call, 'data', 'a');
    await door.remove(call, 'data');
    assert.deepEqual(w.secretsSeen[0], { password: 'hunter2' });
    assert.deepEqual(w.secretsSeen.at(-1), { password: 'changed' });
    assert.ok(!JSON.stringify([w.specs, w.did]).includes('hunter2'));
  });

  test('from nowhere else', async (t) => {
    const w = await world(t);
    const folder = join(w.folder, 'secrets');
    await mkdir(folder);
    await writeFile(join(w.folder, 'outside'), 'x');
    const door = w.open({ secretsFolder: folder });
    for (const file of ['@../outside', '@/../outside', '@.', '@missing']) {
      const options = { connection: 'nas', 'secret.k': file };
      await assert.rejects(door.create(call, 'x', options), failsWith('FAILED_PRECONDITION', /secret k/), file);
    }
    const none = w.open().create(call, 'x', { connection: 'nas', 'secret.k': '@pw' });
    await assert.rejects(none, failsWith('FAILED_PRECONDITION', /--docker-secrets-folder/));
    assert.deepEqual(w.did, []);
  });
});

describe('get', () => {
  test('on another node, or after the state is lost, the back ends tell', async (t) => {
    const w = await world(t);
    await w.open().create(call, 'data', { connection: 'san', size: '5Mi', mountFlags: 'noatime' });
    await rm(join(w.folder, 'state'), { recursive: true });
    const found = await w.open().get(call, 'data');
    assert.equal(found?.Status.id, 'v:san/data');
    assert.equal(found.Status.connection, 'san');
    assert.equal(found.Status.size, '5 MiB');
  });

  test('a silent back end: what is remembered, and that it is', async (t) => {
    const w = await world(t);
    const door = w.open();
    await door.create(call, 'data', { connection: 'nas' });
    w.down.add('nas');
    const found = await door.get(call, 'data');
    assert.equal(found?.Name, 'data');
    assert.match(found.Status.unreachable ?? '', /as last known; connection "nas": no answer/);
    assert.deepEqual(
      (await door.list(call)).map((one) => one.Name),
      ['data'],
    );
  });

  test('a connection without a file is no reason to forget its volumes', async (t) => {
    const w = await world(t);
    const door = w.open();
    await door.create(call, 'data', { connection: 'nas' });
    w.volumes.delete('nas');
    assert.match((await door.get(call, 'data'))?.Status.unreachable ?? '', /there is no file/);
    await assert.rejects(door.remove(call, 'data'), failsWith('FAILED_PRECONDITION'));
  });

  test('unknown while somebody is silent: an error, not an absence', async (t) => {
    const w = await world(t);
    w.down.add('san');
    await assert.rejects(w.open().get(call, 'data'), failsWith('UNAVAILABLE', /not everybody could be asked.*san/));
    w.down.clear();
    assert.equal(await w.open().get(call, 'data'), undefined);
  });

  test('gone on the back end is gone here, and can be made anew elsewhere', async (t) => {
    const w = await world(t);
    const door = w.open();
    await door.create(call, 'data', { connection: 'nas' });
    w.volumes.get('nas')?.clear();
    assert.equal(await door.get(call, 'data'), undefined);
    await door.create(call, 'data', { connection: 'san' });
    assert.equal((await door.get(call, 'data'))?.Status.connection, 'san');
  });

  test('two volumes of one name are told apart by their connections', async (t) => {
    const w = await world(t);
    const door = w.open();
    await door.create(call, 'nas/data', {});
    await door.create(call, 'san/data', {});
    await assert.rejects(door.get(call, 'data'), failsWith('FAILED_PRECONDITION', /nas\/data or san\/data/));
    assert.equal((await door.get(call, 'san/data'))?.Status.id, 'v:san/data');
    assert.deepEqual(
      (await door.list(call)).map((one) => one.Name),
      ['nas/data', 'san/data'],
    );
    await rm(join(w.folder, 'state'), { recursive: true });
    assert.deepEqual(
      (await door.list(call)).map((one) => one.Name),
      ['nas/data', 'san/data'],
    );
  });
});

describe('volumes that Docker did not make', () => {
  const others = {
    parameters: { connection: 'nas' },
    volume: { id: 'v:nas/web', capacityBytes: 1, context: { a: 'b' } },
  };

  test('are not found by their bare name and not listed: `docker volume rm` would mean them', async (t) => {
    const w = await world(t);
    w.volumes.get('nas')?.set('web', others);
    const door = w.open();
    assert.equal(await door.get(call, 'web'), undefined);
    assert.deepEqual(await door.list(call), []);
    await door.remove(call, 'web');
    assert.deepEqual(w.did, []);
  });

  test('can be used by their qualified name, and stay when that is removed', async (t) => {
    const w = await world(t);
    w.volumes.get('nas')?.set('web', others);
    const door = w.open();
    assert.match((await door.get(call, 'nas/web'))?.Status.note ?? '', /leaves it alone/);
    await door.mount(call, 'nas/web', 'a');
    await door.unmount(call, 'nas/web', 'a');
    await assert.rejects(door.remove(call, 'nas/web'), failsWith('FAILED_PRECONDITION', /ctl delete v:nas\/web/));
    assert.ok(w.volumes.get('nas')?.has('web'));
  });

  test('stand in the way of a new one of their name', async (t) => {
    const w = await world(t);
    w.volumes.get('nas')?.set('web', others);
    const door = w.open({ defaults: { connection: 'san' } });
    await assert.rejects(door.create(call, 'web', {}), failsWith('ALREADY_EXISTS', /nas\/web/));
  });
});

describe('a back end that remembers no parameters', () => {
  test('its volumes are known where they were made, with their options', async (t) => {
    const w = await world(t);
    w.remembers = false;
    await w.open().create(call, 'data', { connection: 'nas', mountFlags: 'noatime' });
    const door = w.open();
    assert.equal((await door.get(call, 'data'))?.Status.id, 'v:nas/data');
    await door.mount(call, 'data', 'a');
    await door.unmount(call, 'data', 'a');
    await door.remove(call, 'data');
    assert.equal(w.volumes.get('nas')?.size, 0);
  });
});

describe('remove', () => {
  test('removes the volume; what is not there is success', async (t) => {
    const w = await world(t);
    const door = w.open();
    await door.create(call, 'data', { connection: 'nas' });
    await door.remove(call, 'data');
    await door.remove(call, 'data');
    assert.deepEqual(w.did, ['create nas/data', 'delete v:nas/data']);
    assert.deepEqual(await door.list(call), []);
  });

  test('what may be where nobody answers is an error', async (t) => {
    const w = await world(t);
    w.down.add('nas');
    await assert.rejects(w.open().remove(call, 'data'), failsWith('UNAVAILABLE'));
  });
});

test('names of any kind have files of their own and come back from ids', async (t) => {
  const w = await world(t);
  const names = ['a b', 'a.b', 'a[0]', 'ü'.repeat(100), `${'ü'.repeat(99)}v`, '..', 'CON', 'x'.repeat(255)];
  const door = w.open();
  for (const name of names) await door.create(call, name, { connection: 'nas' });
  for (const name of names) assert.equal((await door.get(call, name))?.Name, name);
  assert.deepEqual((await door.list(call)).map((one) => one.Name).sort(), names.toSorted());
});
