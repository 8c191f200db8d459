/** The program as one file, in a folder without packages, on both runtimes that it is made for. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { generate } from '../../scripts/generate.ts';
import { bundle } from '../../scripts/lib/bundle.ts';
import { commitOf } from '../../scripts/lib/commit.ts';
import { denoPath } from '../../scripts/lib/deno-path.ts';
import { repository } from '../../scripts/lib/repository.ts';

const execute = promisify(execFile);

/** Program and arguments that run a module. */
const runtimes: Readonly<Record<string, readonly string[]>> = {
  'Node.js': [process.execPath],
  Deno: [denoPath(), 'run', '--quiet', '-A', '--no-config', '--no-prompt'],
};

let text: string;
let identity: string;

before(async () => {
  await generate();
  text = await bundle();
  const { version }: { version: string } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'));
  identity = `switchboard ${version} (${await commitOf(repository)})`;
});

/** A folder that holds the bundle and nothing else. */
async function installed(t: TestContext): Promise<{ folder: string; file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-bundle-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'switchboard.mjs');
  await writeFile(file, text);
  return { folder, file };
}

async function untilReady(child: ChildProcess): Promise<void> {
  assert.ok(child.stdout);
  for await (const line of createInterface(child.stdout)) if (JSON.parse(line).message === 'ready') break;
  child.stdout.resume();
}

test('equal sources give equal bytes, without a trace of where they were built', async () => {
  assert.equal(await bundle(), text);
  assert.ok(!text.includes(repository));
});

test('telling the version loads nothing that a server needs', async (t) => {
  const { folder, file } = await installed(t);
  const hook = join(folder, 'hook.cjs');
  await writeFile(hook, `process.on('exit', () => console.error(JSON.stringify(process.moduleLoadList)));`);
  const { stdout, stderr } = await execute(process.execPath, ['--require', hook, file, '--version']);
  assert.equal(stdout, `${identity}\n`);
  const loaded: string[] = JSON.parse(stderr);
  assert.ok(loaded.includes('NativeModule fs'), 'the list is what it is taken for');
  for (const name of ['http', 'http2', 'tls']) assert.ok(!loaded.includes(`NativeModule ${name}`), name);
});

for (const [name, [program, ...options]] of Object.entries(runtimes)) {
  test(`${name} runs it: it serves, is ready, and stops when asked to`, async (t) => {
    const { folder, file } = await installed(t);
    const env = { ...process.env, SWITCHBOARD_STATE_DIR: join(folder, 'state'), NO_COLOR: '1' };
    const run = (...args: string[]) => execute(program!, [...options, file, ...args], { env, cwd: folder });
    assert.equal((await run('--version')).stdout, `${identity}\n`);
    assert.match((await run('drivers')).stdout, /^local-hostpath /m);

    const child = spawn(program!, [...options, file, 'serve', '--log-format', 'json'], {
      env,
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const exited = once(child, 'exit');
    t.after(() => child.kill('SIGKILL'));
    await untilReady(child);
    await run('probe', '--timeout', '10');
    await run('ctl', 'create', 'data', '--connection', 'local', '--size', '1Mi');
    assert.match((await run('ctl', 'list')).stdout, /v:local\/data/);

    // A share is worked on by a process of its own, which is this very program again.
    const base = join(folder, 'base');
    await mkdir(base);
    const nfs = { shareHost: '127.0.0.1', shareBasePath: '/srv', controllerBasePath: base };
    await writeFile(join(folder, 'state/connections/share.yaml'), JSON.stringify({ driver: 'nfs-client', nfs }));
    await run('ctl', 'create', 'data', '--connection', 'share', '--size', '1Mi');
    assert.deepEqual(await readdir(join(base, 'v')), ['data']);
    child.kill('SIGTERM');
    assert.deepEqual(await exited, [0, null]);
  });
}
