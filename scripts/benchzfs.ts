/**
 * `npm run bench:zfs`: zfs-generic-nfs over real SSH on a real pool in a guest: round trips and commands per call, time and CPU of volumes made and
 * deleted, and how that grows with the number of volumes; beside it the commands that democratic-csi sends for the same. It takes root.
 *
 *   --rounds N, --slice MS   how often, and for how long each time (4 rounds of 3,000 ms)
 *   --volumes N,N,…          how many there are when growth is measured (100,1000,5000; an empty text leaves it out)
 *   --json                   everything as JSON
 *
 * Times depend on the machine and on what else it does: the ratios are what counts. It reports and never fails for a figure.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureZfs } from '../test/bench/zfs/measure.ts';
import { pluginSubject } from '../test/bench/zfs/plugin-subject.ts';
import { reportZfs } from '../test/bench/zfs/report.ts';
import { sequenceSubject } from '../test/bench/zfs/sequence-subject.ts';
import { openStorage } from '../test/bench/zfs/storage.ts';
import type { ZfsSubject } from '../test/bench/zfs/subject.ts';
import { noGuests } from '../test/lab/lab-files.ts';
import { buildBundle, bundlePath } from './lib/build-bundle.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '4' },
    slice: { type: 'string', default: '3000' },
    volumes: { type: 'string', default: '100,1000,5000' },
    json: { type: 'boolean', default: false },
  },
});

/** One line that is overwritten on a terminal, and lines elsewhere. */
const onProgress = (text: string) =>
  void process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${text}` : `${text}\n`);

async function bench(folder: string): Promise<void> {
  await buildBundle();
  const storage = await openStorage();
  const subjects: ZfsSubject[] = [];
  try {
    subjects.push(await pluginSubject(storage, [process.execPath, bundlePath], folder));
    subjects.push(await sequenceSubject(storage));
    const results = await measureZfs(storage, subjects, {
      rounds: Number(options.rounds),
      sliceMs: Number(options.slice),
      volumes: options.volumes.split(',').filter(Boolean).map(Number),
      onProgress,
    });
    onProgress('');
    const machine = `${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`;
    process.stdout.write(
      options.json
        ? `${JSON.stringify(results, undefined, 2)}\n`
        : reportZfs(results, machine, process.stdout.isTTY === true),
    );
  } finally {
    for (const subject of subjects) await subject.close().catch(() => {});
    await storage.guest.down();
  }
}

if (noGuests) {
  console.error(noGuests);
  process.exitCode = 1;
} else {
  const folder = await mkdtemp(join(tmpdir(), 'bench-zfs-'));
  try {
    await bench(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
