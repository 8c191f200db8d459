/** Two servers and one state directory. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type ClaimOptions, claimState } from '../../src/cli/state-claim.ts';
import { createLogger, silentLogger } from '../../src/core/logger.ts';

async function claimant(t: TestContext, ...below: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'state-claim-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const stateDirectory = join(folder, ...below);
  const servers = join(stateDirectory, 'servers');
  return {
    stateDirectory,
    servers,
    claim: (more: Partial<ClaimOptions> = {}) =>
      claimState({
        stateDirectory,
        claims: ['node'],
        endpoints: ['unix:///csi.sock'],
        log: silentLogger,
        patienceMs: 0,
        ...more,
      }),
  };
}

const refused = {
  code: 'FAILED_PRECONDITION',
  message: new RegExp(
    `another server .*: process ${process.pid} .*serving unix:///csi\\.sock; stop it, or .*STATE_DIR`,
  ),
};

test('who serves is alone until it has ended', async (t) => {
  const { claim, servers } = await claimant(t);
  const first = await claim();
  first.serving();
  for (let round = 0; round < 2; round++) await assert.rejects(claim(), refused);
  assert.equal((await readdir(servers)).length, 1, 'who was refused leaves nothing');
  await first.release();
  assert.deepEqual(await readdir(servers), []);
  const second = await claim();
  await second.release();
});

test('others claim something else beside it', async (t) => {
  const { claim } = await claimant(t);
  const node = await claim();
  node.serving();
  const docker = await claim({ claims: ['docker'] });
  docker.serving();
  const named = await claim({ claims: ['node.other'] });
  await assert.rejects(claim({ claims: ['node.third', 'docker'] }), refused);
  for (const one of [node, docker, named]) await one.release();
});

test('whoever stops is waited for, and whoever does not stop is named', async (t) => {
  const { claim } = await claimant(t);
  const first = await claim();
  first.serving();
  first.stopping();
  await assert.rejects(claim({ patienceMs: 1 }), { message: /which is stopping/ });
  const second = claim({ patienceMs: 60_000 });
  await first.release();
  await (await second).release();
});

test('of many that begin at once, one serves', async (t) => {
  const { claim } = await claimant(t);
  let serving = 0;
  const begin = async () => {
    const mine = await claim({ patienceMs: 60_000 });
    serving++;
    mine.serving();
    return mine;
  };
  const results = await Promise.allSettled([1, 2, 3, 4].map(begin));
  assert.equal(serving, 1);
  for (const result of results) if (result.status === 'fulfilled') await result.value.release();
});

test('what a killed process left is no claim', async (t) => {
  const { claim, stateDirectory, servers } = await claimant(t);
  const module = join(import.meta.dirname, '../../src/cli/state-claim.ts');
  const child = spawn(process.execPath, [
    '--no-warnings',
    '--input-type=module',
    '-e',
    `import { claimState } from ${JSON.stringify(module)};
     const log = { warn: console.error };
     const claim = await claimState({ stateDirectory: ${JSON.stringify(stateDirectory)}, claims: ['node'], endpoints: [], log });
     claim.serving();
     console.log('serving');
     setInterval(() => {}, 1000);`,
  ]);
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  await assert.rejects(claim(), { message: new RegExp(`process ${child.pid} `) });
  child.kill('SIGSTOP');
  await assert.rejects(claim(), { message: /a process that does not answer/ });
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  assert.equal((await readdir(servers)).length, 1);
  const next = await claim();
  assert.equal((await readdir(servers)).length, 1, 'it is removed');
  await next.release();
});

test('the directory may have a path that is too long for a socket', async (t) => {
  const { claim, servers } = await claimant(t, 'a'.repeat(120));
  const first = await claim();
  first.serving();
  await assert.rejects(claim(), refused);
  await first.release();
  assert.deepEqual(await readdir(servers), []);
});

test('where nothing can be written, nobody is kept from serving', async (t) => {
  const { claim, stateDirectory } = await claimant(t, 'state');
  await mkdir(join(stateDirectory, '..'), { recursive: true });
  await writeFile(stateDirectory, 'no directory');
  const lines: string[] = [];
  const log = createLogger({ level: 'info', format: 'json', write: (line) => lines.push(line) });
  for (let round = 0; round < 2; round++) (await claim({ log })).serving();
  assert.match(lines.join(''), /whether another server uses the same state directory cannot be told/);
});
