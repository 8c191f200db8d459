import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import fc from 'fast-check';
import * as v from 'valibot';
import { parseConfig } from '../../src/config/load.ts';
import { isId, layoutOf } from '../../src/drivers/directory/layout.ts';
import {
  folderOf,
  formatRepositoryId,
  formatSnapshotId,
  isRepositoryId,
  parseSnapshotId,
  snapshotFolder,
  snapshotKey,
} from '../../src/drivers/directory/snapshot-id.ts';
import { formatWorkName, newWork, parseWorkName } from '../../src/drivers/directory/work-name.ts';
import { driverType, driverTypes } from '../../src/drivers/index.ts';
import { localHostpath } from '../../src/drivers/local-hostpath/type.ts';
import { lifeOf, thisOwner } from '../../src/node/owner.ts';

test('snapshot ids are query strings where they fit, and both forms mean the same', () => {
  assert.equal(formatSnapshotId('v1-s1', 128), 'snapshot_driver=filecopy&snapshot_id=v1-s1');
  assert.equal(formatSnapshotId('v1-s1', 30), 'v1-s1');
  assert.equal(folderOf('snapshot_driver=filecopy&snapshot_id=v1-s1'), 'v1-s1');
  assert.equal(folderOf('snapshot_id=v1-s1&snapshot_driver=filecopy'), 'v1-s1');
  assert.equal(folderOf('v1-s1'), 'v1-s1');
  assert.equal(folderOf('snapshot_driver=filecopy&snapshot_id=v1-a+b:c'), 'v1-a+b:c');
});

test('every snapshot folder can be found again by the id it is given out under', () => {
  const names = fc.stringMatching(/^[A-Za-z0-9_:.+-]{1,128}$/);
  fc.assert(
    fc.property(
      fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/),
      names,
      fc.integer({ min: 62, max: 128 }),
      (volume, name, max) => {
        const folder = snapshotFolder(volume, name, max);
        const id = formatSnapshotId(folder, max);
        assert.ok(id.length <= max);
        assert.ok(isId('s', folder));
        assert.equal(folderOf(id), folder);
      },
    ),
    { numRuns: 300 },
  );
});

test('ids of snapshots in repositories fit, and a key is never taken for the id that a repository gave', () => {
  const id = 'e2dae0dd54a77385e8fc04170f08e9390214798da1105da3c7134b9b0f0aafba';
  assert.equal(formatRepositoryId('restic', id, 128), `snapshot_driver=restic&snapshot_id=${id}`);
  assert.equal(formatRepositoryId('restic', id, 62), `snapshot_driver=restic&snapshot_id=${id.slice(0, 27)}`);
  fc.assert(
    fc.property(
      fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/),
      fc.stringMatching(/^[A-Za-z0-9_:.+-]{1,128}$/),
      fc.integer({ min: 62, max: 128 }),
      fc.constantFrom('restic', 'kopia'),
      (volume, name, max, engine) => {
        const key = snapshotKey(engine, volume, name, max);
        const given = formatRepositoryId(engine, key, max);
        assert.ok(given.length <= max, given);
        assert.ok(isId('s', key) && !isRepositoryId(key));
        assert.deepEqual(parseSnapshotId(given), { engine, inner: key });
      },
    ),
    { numRuns: 300 },
  );
  assert.notEqual(snapshotKey('restic', 'v', 'a:b', 128), snapshotKey('restic', 'v', 'a+b', 128));
});

test('ids of snapshots that are elsewhere, or nowhere', () => {
  assert.deepEqual(parseSnapshotId('snapshot_driver=restic&snapshot_id=abc'), { engine: 'restic', inner: 'abc' });
  assert.equal(folderOf('snapshot_driver=restic&snapshot_id=abc'), undefined);
  assert.equal(parseSnapshotId('snapshot_driver=tar&snapshot_id=abc'), undefined);
  for (const id of [
    '',
    '..',
    '.',
    '../x',
    'a/b',
    'a\0b',
    'a\nb',
    'x'.repeat(251),
    'snapshot_driver=filecopy',
    'snapshot_driver=filecopy&snapshot_id=../x',
  ]) {
    assert.equal(folderOf(id), undefined, JSON.stringify(id));
  }
});

test('no id leads out of its folder', () => {
  const layout = layoutOf('/base');
  const hostile = fc.oneof(
    fc.string(),
    fc.array(fc.constantFrom('..', '/', '.', 'a', '\0', '.2e', '-')).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(hostile, fc.constantFrom('v', 's'), (id, area) => {
      if (isId(area, id)) assert.equal(layout.data(area, id), `/base/${area}/${id}`);
    }),
    { numRuns: 300 },
  );
});

test('work names are read back', () => {
  const name = { owner: '0123456789ab.4026531836.12.3456', work: newWork(), project: 77 };
  assert.deepEqual(parseWorkName(formatWorkName(name)), name);
  const { project: _project, ...plain } = name;
  assert.deepEqual(parseWorkName(formatWorkName(plain)), plain);
  for (const text of ['', 'x', '../x', 'a.1.2.3-zz']) assert.equal(parseWorkName(text), undefined);
});

test('this process is alive, one that never was is dead, one elsewhere is unknown', async () => {
  const mine = await thisOwner();
  assert.equal(await lifeOf(mine), 'alive');
  const [boot, namespace, pid, start] = mine.split('.');
  assert.equal(await lifeOf(`${boot}.${namespace}.${pid}.${Number(start) + 1}`), 'dead');
  assert.equal(await lifeOf(`${boot}.${namespace}.4194305.1`), 'dead');
  assert.equal(await lifeOf(`${boot}.1.${pid}.${start}`), 'unknown');
  assert.equal(await lifeOf(`abc.${namespace}.${pid}.${start}`), 'unknown');
  assert.equal(await lifeOf(''), 'unknown');
});

const parse = (block: object) => {
  const paths = { shareBasePath: '/b', controllerBasePath: '/b' };
  return v.parse(localHostpath.schema, { driver: 'local-hostpath', 'local-hostpath': { ...paths, ...block } })[
    'local-hostpath'
  ];
};

test('the configuration block: paths, owners and modes as people write them', () => {
  assert.equal(parse({ shareBasePath: '/b/c/' }).shareBasePath, '/b/c');
  assert.equal(parse({ shareBasePath: '/' }).shareBasePath, '/');
  for (const path of ['', 'b', './b', '/a\0b'])
    assert.throws(() => parse({ controllerBasePath: path }), JSON.stringify(path));
  assert.equal(parse({ dirPermissionsUser: 0 }).dirPermissionsUser, '0');
  assert.equal(parse({ dirPermissionsGroup: 'users' }).dirPermissionsGroup, 'users');
  assert.throws(() => parse({ dirPermissionsUser: -1 }));
  assert.equal(parse({ dirPermissionsMode: '0770' }).dirPermissionsMode, 0o770);
  assert.equal(parse({ dirPermissionsMode: 777 }).dirPermissionsMode, 0o777);
  assert.equal(parse({}).quota, 'none');
  assert.throws(() => parse({ quota: 'user' }));
  parse({ snapshots: { default_driver: 'restic', restic: { env: { RESTIC_PASSWORD: 'x' }, prune: 'yes' } } });
});

test('every driver in the table accepts its own example', () => {
  for (const type of driverTypes) {
    v.parse(type.schema, type.example);
    assert.equal(driverType(type.name), type);
  }
  assert.equal(driverType('constructor'), undefined);
});

test('the example of a connection is understood to the last key', async () => {
  const text = await readFile(new URL('../../examples/connections/local-hostpath.yaml', import.meta.url), 'utf8');
  const every = text.replace(/^#(?=\w+: )/gm, '');
  assert.notEqual(every, text);
  const env = { RESTIC_PASSWORD: 'a', KOPIA_TOKEN: 'b' };
  const loaded = parseConfig(every, 'local-hostpath.yaml', () => localHostpath.schema, { env });
  assert.deepEqual(loaded.warnings, []);
  assert.equal(loaded.value['local-hostpath'].dirPermissionsMode, 0o777);
  assert.equal(loaded.value.instance_id, 'disk1');
});
