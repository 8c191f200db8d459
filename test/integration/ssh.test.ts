import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { createLocalShell } from '../../src/backends/shell/local-shell.ts';
import { attemptSteps, runSteps } from '../../src/backends/shell/steps.ts';
import type { SshSettings } from '../../src/backends/ssh/settings.ts';
import { createSshHosts, type SshRequest } from '../../src/backends/ssh/ssh-hosts.ts';
import { detachedContext } from '../../src/core/call.ts';
import { CallError, type StatusCode } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { cable, sshServer, until } from './ssh-server.ts';

const call = detachedContext(silentLogger);

function open(t: { after(work: () => Promise<void>): void }, settings: SshSettings, requests: SshRequest[] = []) {
  const shell = createSshHosts((request) => requests.push(request)).open(settings);
  t.after(() => shell.close());
  return shell;
}

const run = (text: string, more: { timeoutMs?: number } = {}) => ({
  text,
  title: 'test',
  timeoutMs: 20_000,
  ...more,
});

const failsWith = (code: StatusCode, text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CallError);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, text);
  return true;
};

/** Prints the server's process: above the shell that runs scripts, there are the two that set it up. */
const serverProcess = `up() { ps -o ppid= -p "$1" | tr -d ' '; }; up "$(up "$PPID")"\n`;

async function isGone(pidFile: string): Promise<boolean> {
  const pid = (await readFile(pidFile, 'utf8')).trim();
  return access(`/proc/${pid}`).then(
    () => false,
    () => true,
  );
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

test('a script: its output, its exit code, the signal that ended it', async (t) => {
  const server = await sshServer(t);
  const requests: SshRequest[] = [];
  const shell = open(t, server.settings, requests);
  const output = await shell.run(call, run('echo out; echo err >&2; exit 3\n'));
  assert.deepEqual(output, { code: 3, signal: null, stdout: 'out\n', stderr: 'err\n', truncated: false });
  const killed = await shell.run(call, run('kill -KILL $$\n'));
  assert.equal(killed.signal, 'KILL');
  assert.equal(killed.code, null);
  assert.deepEqual(
    requests.map(({ title, outcome }) => ({ title, outcome })),
    [
      { title: 'test', outcome: 'ok' },
      { title: 'test', outcome: 'ok' },
    ],
  );
});

test('scripts run side by side on one connection, and no more of them than there are channels', async (t) => {
  const server = await sshServer(t, ['MaxSessions 3']);
  const shell = open(t, { ...server.settings, channels: 3 });
  const outputs = await Promise.all(
    Array.from({ length: 20 }, (_, i) => shell.run(call, run(`echo ${i}; ${serverProcess}`))),
  );
  assert.deepEqual(
    outputs.map(({ stdout }) => stdout.split('\n')[0]),
    Array.from({ length: 20 }, (_, i) => String(i)),
  );
  assert.equal(new Set(outputs.map(({ stdout }) => stdout.split('\n')[1])).size, 1, 'one server process has them all');
});

test('one shell runs script after script, and none of them sees what another changed', async (t) => {
  const server = await sshServer(t);
  const shell = open(t, server.settings);
  const spoilt = `cd /; x=1; set -e; PATH=/nowhere; trap 'echo trapped' TERM; exec 9>&1 >/dev/null 2>&1; exit 9\n`;
  const first = await shell.run(call, run('pwd; echo "$$ $PATH"\n'));
  assert.equal((await shell.run(call, run(spoilt))).code, 9);
  assert.equal((await shell.run(call, run('cat; false; echo "$x$(pwd)"; echo "$$ $PATH"\n'))).stdout, first.stdout);
  // What scripts say is not mixed up, however much it is.
  const many = 'n=0; while [ $n -lt 20000 ]; do echo line $n; echo other $n >&2; n=$((n+1)); done\n';
  const said = await shell.run(call, run(many));
  assert.equal(said.stdout.split('\n').length, 20_001);
  assert.equal(said.stderr.split('\n').length, 20_001);
  assert.equal((await shell.run(call, run('printf short; printf err >&2\n'))).stdout, 'short');
});

test('a shell that was ended while it had nothing to do is not missed', async (t) => {
  const server = await sshServer(t);
  const shell = open(t, server.settings);
  const { stdout } = await shell.run(call, run('echo $PPID $$\n'));
  const [above = 0, pid = 0] = stdout.trim().split(' ').map(Number);
  process.kill(pid, 'SIGKILL');
  await until(() => isThere(`/proc/${above}`).then((is) => !is));
  // The news of it may still be on its way.
  await until(() =>
    shell.run(call, run('echo again\n')).then(
      ({ stdout: said }) => said === 'again\n',
      () => false,
    ),
  );
});

test('shells with equal settings share a connection until the last is closed', async (t) => {
  const server = await sshServer(t);
  const hosts = createSshHosts();
  const [one, other] = [hosts.open(server.settings), hosts.open(server.settings)];
  t.after(() => Promise.all([one.close(), other.close()]));
  const first = (await one.run(call, run(serverProcess))).stdout;
  await one.close();
  assert.equal((await other.run(call, run(serverProcess))).stdout, first);
  await other.close();
  await assert.rejects(other.run(call, run(serverProcess)), failsWith('UNAVAILABLE', /closed/));
});

test('logging in: a password is refused without one, a key with a passphrase is opened', async (t) => {
  const server = await sshServer(t);
  const locked = { ...server.settings, privateKey: await readFile(join(server.folder, 'locked'), 'utf8') };
  const opened = open(t, { ...locked, passphrase: 'open, please' });
  assert.equal((await opened.run(call, run('echo in\n'))).stdout, 'in\n');
  await assert.rejects(open(t, locked).run(call, run('')), failsWith('FAILED_PRECONDITION', /root@127\.0\.0\.1/));
  const { privateKey, ...keyless } = server.settings;
  const refused = open(t, { ...keyless, password: 'wrong' });
  await assert.rejects(refused.run(call, run('')), failsWith('UNAUTHENTICATED', /refuses the login/));
  await assert.rejects(refused.run(call, run('')), failsWith('UNAUTHENTICATED', /tried again in \d+ s/));
  assert.ok(privateKey);
});

test('an agent that has the key logs in', async (t) => {
  const server = await sshServer(t);
  const socket = join(server.folder, 'agent');
  const started = execFileSync('ssh-agent', ['-a', socket], { encoding: 'utf8' });
  const pid = Number(/SSH_AGENT_PID=(\d+)/.exec(started)?.[1]);
  t.after(() => process.kill(pid));
  execFileSync('ssh-add', ['-q', join(server.folder, 'user')], {
    env: { ...process.env, SSH_AUTH_SOCK: socket },
    stdio: 'ignore',
  });
  const { privateKey: _, ...keyless } = server.settings;
  assert.equal((await open(t, { ...keyless, agent: socket }).run(call, run('echo in\n'))).stdout, 'in\n');
});

test('the host key is checked by known_hosts, plain and hashed, and by fingerprint', async (t) => {
  const server = await sshServer(t);
  const { folder, port, settings, hostKey } = server;
  const file = join(folder, 'known');
  const shellWith = (hostKeyRules: SshSettings['hostKey']) => open(t, { ...settings, hostKey: hostKeyRules });
  const works = async (rules: SshSettings['hostKey']) =>
    assert.equal((await shellWith(rules).run(call, run('echo in\n'))).stdout, 'in\n');

  await writeFile(file, `# comment\n[127.0.0.1]:${port} ${hostKey}\n`);
  await works({ knownHostsFile: file });
  execFileSync('ssh-keygen', ['-q', '-H', '-f', file], { stdio: 'ignore' });
  assert.match(await readFile(file, 'utf8'), /^\|1\|/m);
  await works({ knownHostsFile: file });
  const fingerprint =
    execFileSync('ssh-keygen', ['-lf', join(folder, 'host.pub')], { encoding: 'utf8' }).split(' ')[1] ?? '';
  await works({ fingerprints: [fingerprint] });

  await assert.rejects(
    shellWith({ fingerprints: ['SHA256:AAAA'] }).run(call, run('')),
    failsWith('FAILED_PRECONDITION', /not trusted: it shows the key SHA256:/),
  );
  const other = (await readFile(join(folder, 'user.pub'), 'utf8')).split(' ')[1];
  await writeFile(file, `[127.0.0.1]:${port} ssh-ed25519 ${other}\n`);
  await assert.rejects(
    shellWith({ knownHostsFile: file }).run(call, run('')),
    failsWith('FAILED_PRECONDITION', /not the one that is known/),
  );
  await writeFile(file, `[127.0.0.1]:${port} ${hostKey}\n@revoked * ${hostKey}\n`);
  await assert.rejects(
    shellWith({ knownHostsFile: file }).run(call, run('')),
    failsWith('FAILED_PRECONDITION', /revoked/),
  );
  await writeFile(file, `elsewhere ${hostKey}\n`);
  await assert.rejects(
    shellWith({ knownHostsFile: file }).run(call, run('')),
    failsWith('FAILED_PRECONDITION', /ssh-keyscan/),
  );
});

test('a host that cannot be reached is UNAVAILABLE, is left alone for a moment, and works when it is back', async (t) => {
  const server = await sshServer(t);
  const shell = open(t, server.settings);
  await server.kill();
  await assert.rejects(
    shell.run(call, run('')),
    failsWith('UNAVAILABLE', /root@127\.0\.0\.1:\d+ cannot be reached over SSH: .*ECONNREFUSED/),
  );
  await assert.rejects(shell.run(call, run('')), failsWith('UNAVAILABLE', /tried again in 1 s/));
  await server.start();
  await until(() =>
    shell.run(call, run('')).then(
      () => true,
      () => false,
    ),
  );
});

test('a server that is killed in the middle of a command: UNAVAILABLE, and the next call connects anew', async (t) => {
  const server = await sshServer(t);
  const shell = open(t, server.settings);
  const mark = join(server.folder, 'mark');
  const running = shell.run(call, run(`touch ${mark}; sleep 1000\n`));
  const failed = assert.rejects(
    running,
    failsWith('UNAVAILABLE', /connection was lost during `test`, which may have been done/),
  );
  await until(() => isThere(mark));
  await server.kill();
  await failed;
  await server.start();
  assert.equal((await shell.run(call, run('echo again\n'))).stdout, 'again\n');
});

test('a cancelled call, and a time limit, end the remote command and what it started', async (t) => {
  const server = await sshServer(t);
  const shell = open(t, server.settings);
  const pid = join(server.folder, 'pid-of-sleep');
  const script = `sleep 1000 & echo $! > ${pid}.new; mv ${pid}.new ${pid}; wait\n`;
  const controller = new AbortController();
  const cancelled = shell.run({ ...call, signal: controller.signal }, run(script));
  const failed = assert.rejects(cancelled, failsWith('CANCELLED', /cancelled/));
  await until(() => isThere(pid));
  controller.abort();
  await failed;
  await until(() => isGone(pid));
  await assert.rejects(
    shell.run(call, run(script, { timeoutMs: 700 })),
    failsWith('DEADLINE_EXCEEDED', /127\.0\.0\.1: `test` did not finish within 0\.7 s/),
  );
  await until(() => isGone(pid));
  const stubborn = `trap '' TERM; echo $$ > ${pid}; while :; do sleep 0.1; done\n`;
  await assert.rejects(
    shell.run(call, run(stubborn, { timeoutMs: 700 })),
    failsWith('DEADLINE_EXCEEDED', /did not finish/),
  );
  await until(() => isGone(pid));
});

test('what runs ends with the connection', async (t) => {
  const server = await sshServer(t, ['ClientAliveInterval 1', 'ClientAliveCountMax 1']);
  const { port, cut } = await cable(t, server.port);
  const shell = open(t, { ...server.settings, port, keepaliveMs: 200 });
  const quick = await shell.run(call, run('cat; echo done; exit 4\n'));
  assert.deepEqual({ code: quick.code, stdout: quick.stdout }, { code: 4, stdout: 'done\n' });
  const pid = join(server.folder, 'pid-of-sleep');
  const script = `sleep 1000 & echo $! > ${pid}.new; mv ${pid}.new ${pid}; wait\n`;
  const lost = assert.rejects(shell.run(call, run(script)), failsWith('UNAVAILABLE', /connection was lost/));
  await until(() => isThere(pid));
  cut();
  await lost;
  await until(() => isGone(pid));
});

test('steps: each with its exit code and output, up to the first that fails', async (t) => {
  const server = await sshServer(t);
  const local = createLocalShell(createRunner());
  for (const shell of [open(t, server.settings), local]) {
    const sh = (script: string) => ['sh', '-c', script];
    const results = await runSteps(
      call,
      shell,
      [
        { argv: sh('echo one; echo eins >&2') },
        { argv: sh('printf two; exit 7'), goOn: [0, 7] },
        { argv: ['cat'], input: "it's $HOME\n" },
        { argv: ['no-such-program'], goOn: 'any' },
        { argv: sh('kill -TERM $$') },
        { argv: ['echo', 'never'] },
      ],
      { title: 'steps', timeoutMs: 20_000 },
    );
    assert.deepEqual(
      results.map(({ code, stdout }) => ({ code, stdout })),
      [
        { code: 0, stdout: 'one\n' },
        { code: 7, stdout: 'two' },
        { code: 0, stdout: "it's $HOME\n" },
        { code: 127, stdout: '' },
        { code: 143, stdout: '' },
      ],
    );
    assert.equal(results[0].stderr, 'eins\n');
    assert.match(results[3]?.stderr ?? '', /no-such-program.*not found/);
  }
});

test('steps, and others for when they fail; a guard before all of them', async (t) => {
  const server = await sshServer(t);
  for (const shell of [open(t, server.settings), createLocalShell(createRunner())]) {
    const options = { title: 'steps', timeoutMs: 20_000 };
    const otherwise = [{ argv: ['echo', 'instead'], goOn: 'any' }, { argv: ['false'] }] as const;
    const good = [
      { argv: ['a b', 'c'], body: 'x=$1; printf %s "$x$2$#"; return 3', goOn: [3] },
      { argv: ['true'] },
    ] as const;
    const whole = await attemptSteps(call, shell, good, otherwise, options);
    assert.deepEqual(
      whole.results.map(({ code, stdout }) => [code, stdout]),
      [
        [3, 'a bc2'],
        [0, ''],
      ],
    );
    assert.equal(whole.otherwise, undefined);
    // Also when it is the last step that fails.
    for (const bad of [
      [{ argv: ['false'] }, { argv: ['echo', 'never'] }],
      [{ argv: ['true'] }, { argv: ['false'] }],
    ] as const) {
      const failed = await attemptSteps(call, shell, bad, otherwise, options);
      assert.ok(failed.results.every(({ stdout }) => stdout === ''));
      assert.deepEqual(
        failed.otherwise?.map(({ code, stdout }) => [code, stdout]),
        [
          [0, 'instead\n'],
          [1, ''],
        ],
      );
    }
    const guard = {
      step: { argv: ['why'], body: 'echo "$1"; return 1' },
      refused: ({ stdout }: { stdout: string }) => new CallError('UNAVAILABLE', `no: ${stdout.trim()}`),
    };
    const mark = join(server.folder, 'touched');
    const touch = [{ argv: ['touch', mark] }] as const;
    await assert.rejects(
      attemptSteps(call, shell, touch, touch, { ...options, guard }),
      failsWith('UNAVAILABLE', /no: why/),
    );
    assert.equal(await isThere(mark), false);
  }
  const shell = open(t, server.settings);
  const ended = [{ argv: ['true'] }, { argv: ['sh', '-c', 'kill -KILL $PPID'] }, { argv: ['true'] }] as const;
  await assert.rejects(
    runSteps(call, shell, ended, { title: 'steps', timeoutMs: 20_000 }),
    failsWith('UNAVAILABLE', /ended in the middle/),
  );
});

test('a login shell of the C shell’s family, and words that a shell could read something into, change nothing', async (t) => {
  const server = await sshServer(t);
  const shell = open(t, server.settings);
  const words = fc.array(
    fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'\'"$`\\!*?[]{}()<>|&;~#%=@ \n\t-é😀') })),
    {
      minLength: 1,
      maxLength: 6,
    },
  );
  await fc.assert(
    fc.asyncProperty(words, async (list) => {
      const clean = list.map((word) => word.replaceAll('\0', '').toWellFormed());
      const [result] = await runSteps(call, shell, [{ argv: ['printf', '%s\\0', ...clean] }], {
        title: 'printf',
        timeoutMs: 20_000,
      });
      assert.deepEqual(result.stdout.split('\0').slice(0, -1), clean);
    }),
    { numRuns: 100 },
  );
});
