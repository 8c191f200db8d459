/** Drivers of shares as far as they can be tested without a server: what they give out, and the process that works on the share for them. */
import assert from 'node:assert/strict';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { failure, snapshotSpec, volumeSpec } from './local-hostpath-support.ts';
import { fileWorkers, shareBench } from './share-support.ts';

test('volumes and snapshots of a share live as they do on a disk, and the process at work ends with the driver', async (t) => {
  const { driver, volumes, snapshots, call, base } = await shareBench(t, { config: { instance_id: 'one' } });
  assert.deepEqual(await fileWorkers(), [], 'it is started by the first call');
  const made = await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 ** 30 } }));
  assert.deepEqual(made, {
    id: 'v1',
    capacityBytes: 2 ** 30,
    context: {
      node_attach_driver: 'nfs',
      server: '127.0.0.1',
      share: '/srv/csi/v/v1',
      provisioner_driver: 'nfs-client',
      provisioner_driver_instance_id: 'one',
    },
    source: undefined,
    topology: undefined,
  });
  const [worker] = await fileWorkers();
  assert.ok(worker);
  await writeFile(join(base, 'v/v1/file'), 'content');
  const snapshot = await snapshots.create(call, snapshotSpec('s1', 'v1'));
  const clone = await volumes.create(call, volumeSpec('v2', { source: { type: 'snapshot', id: snapshot.id } }));
  assert.equal((await stat(join(base, 'v', clone.id, 'file'))).size, 7);
  await assert.rejects(
    volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 ** 31 } })),
    failure('ALREADY_EXISTS'),
  );
  const expanded = await driver.expansion?.expand(call, { volumeId: 'v1', capacity: { requiredBytes: 2 ** 31 } });
  assert.deepEqual(expanded, { capacityBytes: 2 ** 31, nodeExpansionRequired: false });
  assert.equal(
    (await volumes.create(call, volumeSpec('v1', { capacity: { requiredBytes: 2 ** 31 } }))).capacityBytes,
    2 ** 31,
  );
  const page = await volumes.list?.(call, { limit: 1 });
  assert.equal(page?.entries[0]?.volume.id, 'v1');
  const next = await volumes.list?.(call, { limit: 1, token: page?.nextToken });
  assert.deepEqual([next?.entries[0]?.volume.id, next?.nextToken], ['v2', undefined]);
  assert.equal((await volumes.get?.(call, 'v1'))?.condition?.abnormal, false);
  assert.deepEqual((await volumes.get?.(call, 'v1'))?.parameters, {});
  const capacity = await driver.capacity?.(call, { capabilities: [], parameters: {} });
  assert.ok((capacity?.availableBytes ?? 0) > 0);
  await snapshots.delete(call, snapshot.id);
  for (const id of ['v1', 'v2', 'v2', '../../etc', '..']) await volumes.delete(call, id);
  assert.deepEqual((await volumes.list?.(call, {}))?.entries, []);
  assert.deepEqual(await fileWorkers(), [worker], 'it is one process');
  await driver.close();
  assert.deepEqual(await fileWorkers(), []);
});
