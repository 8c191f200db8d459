import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { switchboard } from './cli-shell.ts';

interface Fake {
  readonly name: string;
  readonly type?: 'FILESYSTEM' | 'VOLUME' | 'SNAPSHOT';
  readonly properties?: Readonly<Record<string, string>>;
}

const managed = 'democratic-csi:managed_resource';
const complete = {
  [managed]: 'true',
  'democratic-csi:provision_success': 'true',
  'democratic-csi:csi_share_volume_context': '{"node_attach_driver":"nfs"}',
};

/** A connection whose `zfs` is a script: it tells of these datasets whatever is asked, and writes down what else it is to do. */
async function storage(t: TestContext, datasets: readonly Fake[]) {
  const folder = await mkdtemp(join(tmpdir(), 'ctl-repair-'));
  t.after(() => rm(folder, { recursive: true }));
  const told = datasets.map(({ name, type = 'FILESYSTEM', properties = {} }) => {
    const all = { mounted: 'yes', mountpoint: `/${name}`, sharenfs: 'on', creation: '1000000000', ...properties };
    const read = Object.entries(all).map(([key, value]) => [key, { value, source: { type: 'LOCAL', data: '-' } }]);
    return [name, { name, type, properties: Object.fromEntries(read) }];
  });
  await writeFile(join(folder, 'told.json'), JSON.stringify({ datasets: Object.fromEntries(told) }));
  const script = `#!/bin/sh
case $1 in
  version) echo zfs-2.3.9-1 ;;
  get) cat ${folder}/told.json ;;
  *) echo "$*" >>${folder}/done ;;
esac
`;
  await writeFile(join(folder, 'zfs'), script);
  await chmod(join(folder, 'zfs'), 0o755);
  const paths = `cli: { paths: { zfs: ${folder}/zfs, zpool: /bin/true } }`;
  const share = 'nfs:\n  shareHost: nas\n  shareStrategySetDatasetProperties: { properties: { sharenfs: rw } }\n';
  const file = join(folder, 'nas.yaml');
  await writeFile(file, `driver: zfs-generic-nfs\nzfs:\n  datasetParentName: tank/v\n  ${paths}\n${share}`);
  return {
    ctl: (...args: readonly string[]) =>
      switchboard(['ctl', ...args, '--config', file], { PATH: process.env.PATH ?? '' }),
    done: async () => (await readFile(join(folder, 'done'), 'utf8').catch(() => '')).split('\n').filter(Boolean),
  };
}

test('adopt: all of its marks at once, and says its id', async (t) => {
  const { ctl, done } = await storage(t, [{ name: 'tank/v/photos', properties: { refquota: '1073741824' } }]);
  const { code, out, err } = await ctl('adopt', 'tank/v/photos');
  assert.equal(code, 0, err);
  assert.match(out, /photos is a volume now.*v:nas\/photos/);
  const [shared, last, ...others] = await done();
  assert.deepEqual(others, []);
  assert.equal(shared, 'share tank/v/photos');
  const marks = [
    'csi_volume_name=photos',
    'managed_resource=true',
    'csi_share_volume_context=',
    'provision_success=true',
  ];
  assert.match(last ?? '', /^set .* tank\/v\/photos$/);
  for (const mark of marks) assert.ok(last?.includes(mark), mark);
});

test('adopt: what it refuses, it leaves alone', async (t) => {
  const cases: readonly (readonly [string, readonly Fake[], RegExp])[] = [
    ['photos', [{ name: 'tank/v/photos', properties: complete }], /is a volume already/],
    ['photos', [{ name: 'tank/v/photos', type: 'VOLUME' }], /is a volume, and volumes of zfs-generic-nfs/],
    ['photos', [{ name: 'tank/v/photos' }, { name: 'tank/v/photos/old' }], /datasets below it/],
    ['photos', [{ name: 'tank/v/photos', properties: { mounted: 'no' } }], /is not mounted/],
    ['photos', [], /there is no tank\/v\/photos/],
    ['other/photos', [], /not directly below tank\/v/],
    ['photos@now', [], /not directly below tank\/v/],
    ['a:b', [], /cannot be the id/],
    ['-x', [], /./],
    ['x'.repeat(127), [], /122 are possible/],
  ];
  for (const [name, datasets, why] of cases) {
    const { ctl, done } = await storage(t, datasets);
    const { code, err } = await ctl('adopt', name);
    assert.notEqual(code, 0, name);
    assert.match(err, why, name);
    assert.deepEqual(await done(), []);
  }
});

test('orphans: only what is old, and only after a yes', async (t) => {
  const now = String(Math.floor(Date.now() / 1000));
  const { ctl, done } = await storage(t, [
    { name: 'tank/v' },
    { name: 'tank/v/good', properties: complete },
    { name: 'tank/v/half', properties: { [managed]: 'true' } },
    { name: 'tank/v/young', properties: { [managed]: 'true', creation: now } },
    { name: 'tank/v/mine' },
    { name: 'tank/v/copy:a:11', properties: { receive_resume_token: '1-ab' } },
    { name: 'tank/v/copy:b:12' },
    { name: 'tank/v/copy:b:12@snap', type: 'SNAPSHOT', properties: { guid: '12' } },
    { name: 'tank/v/trash:b:01234567', properties: complete },
    // Somebody's own, whatever they are called.
    { name: 'tank/v/copy:c' },
    { name: 'tank/v/copy:c:13' },
    { name: 'tank/v/copy:c:13@snap', type: 'SNAPSHOT', properties: { guid: '14' } },
    { name: 'tank/v/copy:d:15', properties: { receive_resume_token: '1-ab' } },
    { name: 'tank/v/copy:d:15/below' },
    { name: 'tank/v/trash:keep-me', properties: complete },
    { name: 'tank/v/trash:b:76543210' },
    { name: 'tank/v/good/copy:b' },
    { name: 'tank/v/good@volume-source-for-volume-a', type: 'SNAPSHOT' },
    { name: 'tank/v/good@volume-source-for-volume-b', type: 'SNAPSHOT', properties: { clones: 'tank/v/b' } },
    { name: 'tank/v/good@volume-source-for-volume-c', type: 'SNAPSHOT', properties: { userrefs: '1' } },
    { name: 'tank/v/good@by-hand', type: 'SNAPSHOT' },
  ]);
  const looked = await ctl('orphans', '--json');
  assert.equal(looked.code, 1, looked.err);
  const { orphans } = JSON.parse(looked.out);
  assert.deepEqual(
    orphans.map(({ kind, name, outcome }: Record<string, string>) => [kind, name, outcome]),
    [
      ['unfinished', 'tank/v/half', 'left'],
      ['copy', 'tank/v/copy:a:11', 'left'],
      ['copy', 'tank/v/copy:b:12', 'left'],
      ['trash', 'tank/v/trash:b:01234567', 'left'],
      ['snapshot', 'tank/v/good@volume-source-for-volume-a', 'left'],
    ],
  );
  assert.equal((await ctl('orphans', '--fix')).code, 2);
  assert.deepEqual(await done(), []);
  const fixed = await ctl('orphans', '--fix', '--yes');
  assert.equal(fixed.code, 0, fixed.err);
  const [shared, finished, ...others] = await done();
  assert.equal(shared, 'share tank/v/half');
  assert.match(finished ?? '', /^set .*provision_success=true tank\/v\/half$/);
  assert.deepEqual(others, [
    'destroy tank/v/copy:a:11@%',
    'destroy tank/v/copy:a:11',
    'destroy tank/v/copy:b:12@%',
    'destroy tank/v/copy:b:12',
    'destroy tank/v/trash:b:01234567@%',
    'destroy tank/v/trash:b:01234567',
    'destroy tank/v/good@volume-source-for-volume-a',
  ]);
});

test('drivers without a storage of this kind say so', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'ctl-repair-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'here.yaml');
  await writeFile(
    file,
    `driver: local-hostpath\nlocal-hostpath:\n  shareBasePath: ${folder}\n  controllerBasePath: ${folder}\n`,
  );
  const { code, err } = await switchboard(['ctl', 'orphans', '--config', file], {});
  assert.equal(code, 1);
  assert.match(err, /local-hostpath has nothing that could be adopted or repaired/);
});
