/** What `doctor` says of the records of staged volumes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkStagedVolumes } from '../../src/cli/doctor/staged-volumes.ts';
import { parseRecord, recordText, type StagedRecord } from '../../src/node/records/record.ts';
import {
  attachmentKey,
  isRecordName,
  ofPlace,
  ofSameElsewhere,
  recordName,
} from '../../src/node/records/record-name.ts';
import { briefly, type FakeFile, type Machine, machine, only, rootMount } from './doctor-support.ts';

const now = Date.parse('2025-11-21T12:00:00Z');

const kubelet = '/var/lib/kubelet/plugins/kubernetes.io/csi/org.switchboard.csi';

function aRecord(more: Partial<StagedRecord> = {}): StagedRecord {
  return {
    version: 1,
    volumeId: 'v1',
    attacher: 'iscsi',
    identity: { iqn: 'iqn.2025-01.example:v1', lun: '0' },
    place: `${kubelet}/0000/globalmount`,
    bootId: 'boot-1',
    owner: 'elsewhere.1.2.3',
    at: now - 86_400_000,
    ...more,
  };
}

function withRecords(records: readonly StagedRecord[], more: Machine & { readonly spoilt?: string } = {}) {
  const folder = '/var/lib/switchboard/staged';
  const names = records.map(recordName);
  const files = Object.fromEntries(
    records.map((one, index) => [`${folder}/${names[index]}`, more.spoilt ?? recordText(one)]),
  );
  const fileTree: Record<string, FakeFile> = {
    [folder]: { kind: 'directory', names: [...names, `.${names[0]}.new`, 'cleanup.lock'] },
    '/proc/sys/kernel/random/boot_id': 'boot-1\n',
    ...files,
  };
  return checkStagedVolumes(machine({ fileTree, ...more }));
}

test('nothing was ever staged: nothing is said', async () => {
  assert.deepEqual(await checkStagedVolumes(machine()), []);
});

test('what may still be attached is a warning that says what it is and what to do', async () => {
  const found = only(await withRecords([aRecord({ connection: 'nas' })]), 'v:nas/v1');
  assert.equal(found.state, 'warning');
  assert.match(
    found.detail,
    /may still be attached: \S+\/globalmount \(iscsi, iqn iqn\.2025-01\.example:v1, lun 0\), nothing is mounted there/,
  );
  assert.match(found.advice ?? '', /switchboard node cleanup/);
});

test('what has nothing attached is a note, and what is being staged is not left over', async () => {
  const nfs = { attacher: 'nfs', identity: undefined };
  const zfs = { attacher: 'zfs-local', identity: { asset: 'tank/v1' } };
  const records = [
    aRecord({ ...nfs, bootId: 'boot-0' }),
    aRecord({ ...zfs, place: '/x/y' }),
    aRecord({ at: now - 1000, place: '/x/z' }),
  ];
  const [found, ...more] = await withRecords(records);
  assert.deepEqual([found?.state, more], ['note', []]);
  assert.match(found?.detail ?? '', /^2 remembered that are not mounted any more/);
});

test('many leftovers are counted', async () => {
  const records = Array.from({ length: 30 }, (_, index) => aRecord({ volumeId: `v${index}`, place: `/x/${index}` }));
  const found = await withRecords(records);
  assert.equal(found.length, 21);
  assert.match(only(found, 'staged volumes').detail, /10 more/);
});

test('records that nobody can read, of whatever kind', async () => {
  for (const spoilt of ['', '{', '{"version":7}', recordText({ ...aRecord(), place: '/elsewhere' })]) {
    assert.deepEqual(briefly(await withRecords([aRecord()], { spoilt })), ['warning unreadable record'], spoilt);
  }
});

test('mounts beside those that have a record', async () => {
  const mount = (id: number, hash: string) => `${id} 1 8:${id} / /${hash} rw - ext4 /dev/sd${id} rw\n`;
  const inKubelet = (id: number, hash: string) => mount(id, `${kubelet.slice(1)}/${hash}/globalmount`);
  const mountInfo =
    rootMount + inKubelet(2, '1111') + mount(3, 'var/lib/kubelet/plugins/kubernetes.io/csi/other/2222/globalmount');
  const found = await withRecords([aRecord({ place: `${kubelet}/0000/globalmount` })], { mountInfo });
  const note = only(found, 'volumes without record');
  assert.match(note.detail, /^1 without a record, such as \S+\/1111\/globalmount:/);
  assert.equal(note.state, 'note');
});

test('a container’s own file system is no place to remember anything', async () => {
  const mountInfo = '1 0 0:30 / / rw - overlay overlay rw,lowerdir=/l\n';
  assert.deepEqual(briefly(await checkStagedVolumes(machine({ mountInfo }))), ['warning state directory']);
  const kept = `${mountInfo}2 1 8:1 /var /var/lib/switchboard rw - ext4 /dev/sda1 rw\n`;
  assert.deepEqual(await checkStagedVolumes(machine({ mountInfo: kept })), []);
  const modes = { controller: true, node: false };
  assert.deepEqual(await checkStagedVolumes(machine({ mountInfo, modes })), []);
});

const text = fc.string({ maxLength: 40, unit: 'binary' });
const subject = fc.record({
  attacher: text,
  identity: fc.option(fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), text), { nil: undefined }),
  place: text,
});

test('a record is read as it was written, and its name tells its place and its volume', () => {
  fc.assert(
    fc.property(subject, subject, (one, other) => {
      const record = aRecord(one);
      // JSON knows no undefined.
      assert.deepEqual(parseRecord(recordText(record)).record, JSON.parse(JSON.stringify(record)));
      const name = recordName(one);
      assert.ok(isRecordName(name) && ofPlace(one.place)(name) && !ofSameElsewhere(one)(name));
      const same = attachmentKey(one) === attachmentKey(other);
      assert.equal(ofSameElsewhere(other)(name), same && one.place !== other.place);
      assert.equal(ofSameElsewhere({ ...one, place: `${one.place}/` })(name), true);
      const turned = Object.fromEntries(Object.entries(one.identity ?? {}).reverse());
      assert.equal(recordName({ ...one, identity: one.identity && turned }), name, 'the order of keys means nothing');
    }),
    { numRuns: 200 },
  );
});

test('whatever is in a file, it is a record or the reason why it is none', () => {
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), (file) => {
      const read = parseRecord(file);
      assert.ok(read.record === undefined && read.unreadable.length > 0);
    }),
    { numRuns: 200 },
  );
});
