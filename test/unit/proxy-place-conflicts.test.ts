/** Two connections with different shares at one base path are told by `switchboard check`. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { switchboard } from './cli-shell.ts';

const nfs = (more: object) => ({
  shareHost: 'nas',
  shareBasePath: '/srv/csi',
  controllerBasePath: '/mnt/csi',
  ...more,
});

for (const [name, one, other, severity] of [
  ['two paths of a server', {}, { shareBasePath: '/srv/other' }, 'error'],
  ['two names of servers', {}, { shareHost: 'nas2' }, 'warning'],
  ['two servers, of which one is to be mounted', { controllerMount: 'auto' }, { shareHost: 'nas2' }, 'error'],
  [
    'two paths, of which one is known by another name',
    {},
    { shareBasePath: '/x', controllerMountSource: 'n:/y' },
    'warning',
  ],
  ['two shares of a folder of this machine', { controllerMount: 'local' }, { shareBasePath: '/x' }, 'warning'],
  ['the same share twice', { controllerMount: 'auto' }, { shareHost: 'NAS' }, undefined],
  ['two base paths', { controllerBasePath: '/mnt/one/' }, { shareHost: 'nas2', controllerMount: 'auto' }, undefined],
] as const) {
  test(`${name}: ${severity ?? 'nothing'}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'places-'));
    t.after(() => rm(folder, { recursive: true }));
    for (const [file, block] of Object.entries({ one, other })) {
      await writeFile(join(folder, `${file}.yaml`), stringify({ driver: 'nfs-client', nfs: nfs(block) }));
    }
    const { out, code } = await switchboard(['check', folder, '--json']);
    const found = (JSON.parse(out) as { files: { problems: { severity: string; message: string }[] }[] }).files;
    const problems = found.flatMap((file) => file.problems);
    assert.deepEqual(
      problems.map((problem) => problem.severity),
      severity ? [severity, severity] : [],
    );
    for (const { message } of problems)
      assert.match(message, /^connection "(one|other)" works on .* at \/mnt\/csi, too/);
    assert.equal(code === 0, severity !== 'error');
  });
}
