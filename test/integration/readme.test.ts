/** The README's five minutes, word for word. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildBundle, bundlePath } from '../../scripts/lib/build-bundle.ts';
import { repository } from '../../scripts/lib/repository.ts';

test('the walk of the README works as it is written', { skip: process.getuid?.() !== 0 && 'needs root' }, async (t) => {
  const readme = await readFile(join(repository, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/<!-- walk -->\n```sh\n([\s\S]*?)```/g)].map((match) => match[1] ?? '');
  assert.equal(blocks.length, 2);
  const folder = await mkdtemp(join(tmpdir(), 'walk-'));
  t.after(() => rm(folder, { recursive: true }));
  await buildBundle();
  await mkdir(join(folder, 'bin'));
  const shim = `#!/bin/sh\nexec ${process.execPath} ${bundlePath} "$@"\n`;
  await writeFile(join(folder, 'bin/switchboard'), shim, { mode: 0o755 });
  const env = {
    ...process.env,
    PATH: `${folder}/bin:${process.env.PATH}`,
    SWITCHBOARD_STATE_DIR: join(folder, 'state'),
    TMPDIR: folder,
  };
  // Whatever happens to the walk, neither its server nor its mounts outlive it.
  const cleanUp = 'trap \'kill %1 2>/dev/null; for m in "$at"/*; do umount -l "$m" 2>/dev/null; done; true\' ERR\n';
  const script = `set -Eeuo pipefail\nat=/nonexistent\n${cleanUp}${blocks.join('\n')}`;
  const child = spawn('bash', ['-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const code = await new Promise((resolve) => child.on('close', resolve));
  assert.equal(code, 0, `${output}\n${await readFile(join(folder, 'switchboard.log'), 'utf8').catch(() => '')}`);
  assert.match(output, /^hello$/m);
  assert.match(output, /v:local\/data/);
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  assert.ok(!mounts.includes(folder), 'nothing stays mounted');
});
