/** For tests of what a node remembers: a volume that is a file, attached as a loop device. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, realpath, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { MakeAttacher } from '../../src/node/attachers/attacher.ts';
import { hostpath } from '../../src/node/attachers/hostpath.ts';
import type { StagedRecord } from '../../src/node/records/record.ts';
import { loopAttacher } from './loop-attacher.ts';
import { type Bench, type BenchOptions, bench, host } from './node-support.ts';

const MiB = 2 ** 20;
export const attachers: Readonly<Record<string, MakeAttacher>> = { loop: loopAttacher, hostpath, bind: hostpath };

export interface LoopBench extends Bench {
  readonly file: string;
  /** The loop devices that the volume is. */
  devices(): readonly string[];
  records(): Promise<readonly StagedRecord[]>;
  /** The one file in the folder of records. */
  recordFile(): Promise<string>;
}

/** A volume that is a file, attached as a loop device. */
export async function loopBench(t: TestContext, options: BenchOptions = {}): Promise<LoopBench> {
  const { file, devices } = await volumeFile(t);
  const b = await bench(t, { attachers, context: { node_attach_driver: 'loop', file }, ...options });
  const folder = join(b.state, 'staged');
  const names = () => readdir(folder).catch(() => []);
  return {
    ...b,
    file,
    devices,
    records: async () => {
      const read = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8')) as StagedRecord;
      return await Promise.all((await names()).map(read));
    },
    recordFile: async () => {
      const [name = '', ...more] = await names();
      assert.equal(more.length, 0);
      return join(folder, name);
    },
  };
}

export async function volumeFile(t: TestContext) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'node-records-')));
  const file = join(folder, 'volume');
  await writeFile(file, '');
  await truncate(file, 16 * MiB);
  const devices = () => host('losetup', '-j', file, '-n', '-O', 'NAME').split('\n').filter(Boolean);
  t.after(async () => {
    for (const device of devices()) host('losetup', '-d', device);
    await rm(folder, { recursive: true });
  });
  return { file, devices };
}

/** Nothing is mounted, attached or remembered any more. */
export async function assertGone(b: LoopBench): Promise<void> {
  assert.deepEqual(await b.mounts(), []);
  assert.deepEqual(b.devices(), [], 'nothing is attached');
  assert.deepEqual(await readdir(join(b.state, 'staged')).catch(() => []), [], 'nothing is remembered');
  assert.deepEqual(await readdir(b.root), ['vol']);
}
