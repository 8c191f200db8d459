/** The HTTP door on the other runtime: its HTTP server and its process metrics are its own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { denoPath } from '../../scripts/lib/deno-path.ts';
import { repository } from '../../scripts/lib/repository.ts';

test('Deno serves every page, and refuses what Node.js refuses', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'http-deno-'));
  const door = ['--http-endpoint', 'tcp://127.0.0.1:0', '--log-format', 'json'];
  const child = spawn(denoPath(), ['run', '--quiet', '-A', join(repository, 'src/main.ts'), ...door], {
    env: { PATH: process.env.PATH, HOME: folder, SWITCHBOARD_STATE_DIR: join(folder, 'state') },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await closed;
    await rm(folder, { recursive: true, force: true });
  });
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), closed]);
  const [url = ''] = (JSON.parse(String(line)) as { http: string[] }).http;

  const pages = {
    '/': 'Switchboard',
    '/status.json': '"Deno',
    '/readyz': 'ok',
    '/healthz': 'ok',
    '/metrics/capacity': 'bytes',
  };
  for (const [path, text] of Object.entries(pages)) {
    const response = await fetch(url + path);
    assert.equal(response.status, 200, path);
    assert.ok((await response.text()).includes(text), path);
  }
  const metrics = await (await fetch(`${url}/metrics`)).text();
  for (const name of [
    'switchboard_ready',
    'process_resident_memory_bytes',
    'process_open_fds',
    'nodejs_eventloop_lag_p99_seconds',
  ]) {
    assert.match(metrics, new RegExp(`^${name} \\d`, 'm'));
  }
  assert.equal((await fetch(url, { method: 'POST', body: 'x' })).status, 405);
  assert.equal((await fetch(url, { headers: { x: 'x'.repeat(20_000) } })).status, 431);
  child.kill('SIGTERM');
  assert.deepEqual((await closed)[0], 0);
});
