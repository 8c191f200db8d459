/** What happens to a volume on a node from the first container to the last, and again. */
import assert from 'node:assert/strict';
import type { Guest } from './guest.ts';
import { assertNothingLeft } from './leftovers.ts';
import { type NodeVolume, nodeVolume, type VolumeFacts } from './node-volume.ts';
import type { Switchboard } from './switchboard.ts';

export interface LifecycleVolume extends VolumeFacts {
  /** Makes it larger where it is stored. Without it, it has no size of its own. */
  readonly grow?: { readonly toBytes: number; readonly grow: () => Promise<void> } | undefined;
}

/**
 * Stage, publish writable, read-only and twice, write, statistics, expansion, unpublish, unstage, stage again, and the data is as it was.
 * Every call is made twice, as orchestrators do.
 */
export async function lifecycle(guest: Guest, server: Switchboard, facts: LifecycleVolume): Promise<void> {
  const volume = nodeVolume(() => server, facts);
  try {
    await live(guest, server, facts, volume);
  } catch (error) {
    // The next volume is not to fail for what this one left.
    for (const name of ['rw', 'ro', 'too', 'again']) await volume.unpublish(name).catch(() => {});
    await volume.unstage().catch(() => {});
    throw error;
  }
}

async function live(guest: Guest, server: Switchboard, facts: LifecycleVolume, volume: NodeVolume): Promise<void> {
  const isBlock = facts.access === 'block';
  const twice = async (call: () => Promise<void>) => {
    await call();
    await call();
  };
  const at = (name: string) => (isBlock ? volume.target(name) : `${volume.target(name)}/data`);
  const sum = async (name: string) => {
    // Not from the cache: of a block device, each of its device nodes may have one of its own.
    const read = `dd if=${at(name)} bs=1M count=3 status=none ${isBlock ? 'iflag=direct' : ''}`;
    const [digest = ''] = (await guest.run(`set -o pipefail; ${read} | sha256sum`)).split(' ');
    return digest;
  };

  await twice(() => volume.stage());
  await twice(() => volume.publish('rw'));
  await twice(() => volume.publish('ro', { readonly: true }));
  await twice(() => volume.publish('too'));
  await guest.run(`head -c 3M /dev/urandom >/run/data && dd if=/run/data of=${at('rw')} bs=1M conv=fsync,notrunc`);
  const written = await sum('rw');
  assert.equal(written, (await guest.run('sha256sum </run/data')).split(' ')[0]);
  assert.equal(await sum('too'), written);
  assert.equal(await sum('ro'), written);
  const refused = await guest.attempt(`dd if=/dev/zero of=${at('ro')} bs=4096 count=1 conv=notrunc,fsync`);
  assert.match(refused.stderr, isBlock ? /Operation not permitted|Read-only file system/ : /Read-only file system/);
  const before = await volume.stats('rw');
  assert.equal(before.trouble, '');
  assert.ok(before.totalBytes > 0);

  if (facts.grow) {
    const { toBytes, grow } = facts.grow;
    await grow();
    await twice(() => volume.expand(toBytes));
    const { totalBytes, trouble } = await volume.stats('rw');
    assert.equal(trouble, '');
    const share = isBlock ? 1 : 0.8;
    assert.ok(totalBytes >= toBytes * share && totalBytes > before.totalBytes, `${before.totalBytes} → ${totalBytes}`);
    assert.equal(await sum('rw'), written);
    // Where it is read, it has grown with it.
    if (isBlock) assert.equal((await volume.stats('ro')).totalBytes, totalBytes);
  }

  for (const name of ['too', 'ro', 'rw']) await twice(() => volume.unpublish(name));
  await twice(() => volume.unstage());
  await assertNothingLeft(guest, server);

  await volume.stage();
  await volume.publish('again');
  assert.equal(await sum('again'), written);
  await volume.unpublish('again');
  await volume.unstage();
  await assertNothingLeft(guest, server);
}
