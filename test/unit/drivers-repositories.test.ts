import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  programEnvironment,
  withoutSecrets,
} from '../../src/drivers/directory/snapshot-engines/program-environment.ts';
import { createBackupOutput } from '../../src/drivers/directory/snapshot-engines/restic-backup-output.ts';
import { storedByTags } from '../../src/drivers/directory/snapshot-engines/stored-by-tags.ts';

test('a repository program is given what is meant for it, and what is configured counts', () => {
  const own = { RESTIC_PASSWORD: 'a', AWS_REGION: 'b', HOME: '/root', PATH: '/bin', CSI_ENDPOINT: 'x', SECRET: 'y' };
  assert.deepEqual(programEnvironment(own, { RESTIC_PASSWORD: 'c' }), {
    RESTIC_PASSWORD: 'c',
    AWS_REGION: 'b',
    HOME: '/root',
  });
});

test('what a program says is told without the secrets it was given', () => {
  const env = {
    RESTIC_PASSWORD: 'correct horse',
    RESTIC_REPOSITORY: 'rest:https://me:battery@backup.example.org/x',
    AWS_SECRET_ACCESS_KEY: 'staple',
    HOME: '/root',
  };
  const said = 'correct horse at rest:https://me:battery@backup.example.org/x with staple in /root';
  assert.equal(withoutSecrets(said, env), '*** at rest:https://me:***@backup.example.org/x with *** in /root');
});

test('tags of snapshots, those that democratic-csi glued together too', () => {
  const facts = { inner: 'i', host: 'h', path: '/b/v/v1', createdAt: new Date(0) };
  const base = [
    ['source', 'democratic-csi'],
    ['csi_snapshot_name', 's1'],
  ] as const;
  const expected = { ...facts, volumeId: 'v1', name: 's1', instanceId: 'disk1', sizeBytes: 0 };
  assert.deepEqual(storedByTags([...base, ['csi_volume_id', 'v1'], ['csi_instance_id', 'disk1']], facts), expected);
  assert.deepEqual(storedByTags([...base, ['csi_volume_id', 'v1csi_instance_id=disk1']], facts), expected);
  const sized = [...base, ['csi_volume_id', 'v1'], ['csi_size_bytes', '7']] as const;
  assert.deepEqual(storedByTags(sized, facts, 3), { ...expected, instanceId: undefined, sizeBytes: 7 });
  assert.equal(storedByTags(base, facts), undefined);
  assert.equal(storedByTags([['csi_volume_id', 'v1']], facts), undefined);
});

test('the output of a backup: how far it is, what came of it, and what it could not read', () => {
  const reports: (readonly [number, number | undefined])[] = [];
  const output = createBackupOutput({ report: (done, total) => reports.push([done, total]), text: () => undefined });
  const lines = [
    '{"message_type":"status","percent_done":0}',
    '{"message_type":"status","percent_done":0.5,"total_bytes":10,"bytes_done":5}',
    '{"message_type":"summary","snapshot_id":"e2dae0dd","total_files_processed":1}',
  ];
  for (const line of lines) assert.equal(output.takeLine(line), true);
  for (const line of ['', 'created restic repository', '{"message_type":"new"}', '{']) {
    assert.equal(output.takeLine(line), false);
  }
  assert.deepEqual(reports, [
    [0, undefined],
    [5, 10],
  ]);
  assert.equal(output.snapshotId(), 'e2dae0dd');
  const error = (item: string, what: object) => JSON.stringify({ message_type: 'error', item, error: what });
  const gone = error('/v/a', { Op: 'lstat', Path: '/v/a', Err: 2 });
  const goneToo = error('/v/b', { message: 'open /v/b: no such file or directory' });
  const last = 'Warning: at least one source file could not be read';
  assert.equal(output.lostIn([gone, gone, goneToo, last, ''].join('\n')), 2);
  assert.equal(output.lostIn([gone, error('/v/c', { Op: 'read', Path: '/v/c', Err: 5 })].join('\n')), '/v/c: read 5');
  assert.equal(output.lostIn(`${gone}\nsomething else`), 'something else');
  assert.equal(output.lostIn(last), 'it does not say why');
});
