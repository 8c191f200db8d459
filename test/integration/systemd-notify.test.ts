/** sd_notify(3) and sd_listen_fds(3) against real sockets. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { bundlePath } from '../../scripts/lib/build-bundle.ts';
import { services } from '../../src/generated/services.js';
import { switchboard } from '../unit/cli-shell.ts';
import { makeSite, type Site, until } from './server-under-test.ts';

const missing = (process.env.SWITCHBOARD_MISSING ?? '').split(',');
const needs = (...names: string[]) => {
  const lacking = names.filter((name) => missing.includes(name));
  return lacking.length > 0 && `needs ${lacking.join(', ')}`;
};
const skip = needs('systemd-notify', 'perl');

/** Node.js has no datagram sockets on paths; Perl is on every Debian. Each datagram becomes a line, with `|` between its variables. */
const receiver = `
  $| = 1;
  socket(S, PF_UNIX, SOCK_DGRAM, 0) or die;
  bind(S, pack_sockaddr_un($ARGV[0] =~ s/^@/\\0/r)) or die "$!";
  print "bound\\n";
  while (defined recv(S, $text, 65536, 0)) { $text =~ s/\\n/|/g; print "$text\\n" }
`;

interface Received {
  /** The next datagram; those that only wait for others, BARRIER=1, are left out. */
  next(): Promise<string>;
  /** The next that fits; on a busy machine signs of life may come late, and complaints before them. */
  nextLike(pattern: RegExp): Promise<string>;
}

/** Resolves when it is bound. */
async function listenForNotifications(t: TestContext, address: string): Promise<Received> {
  const child = spawn('perl', ['-MSocket', '-e', receiver, address], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async () => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error('the receiver ended');
      if (value !== 'BARRIER=1') return value;
    }
  };
  const nextLike = async (pattern: RegExp) => {
    for (;;) {
      const datagram = await next();
      if (pattern.test(datagram)) return datagram;
    }
  };
  assert.equal(await next(), 'bound');
  return { next, nextLike };
}

const addresses: readonly ((site: Site) => string)[] = [
  (site) => site.path('notify.sock'),
  () => `@switchboard-test-${process.pid}`,
];

for (const address of addresses) {
  const kind = address({ path: (name: string) => name } as Site).startsWith('@') ? 'an abstract socket' : 'a path';
  test(`ready, alive and stopping are told to ${kind}`, { skip }, async (t) => {
    const site = await makeSite(t);
    const socket = address(site);
    const received = await listenForNotifications(t, socket);
    const told = received.next();
    const server = await site.start({ env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '400000' } });
    assert.equal(await told, `READY=1|STATUS=Serving on unix://${site.socket}`);
    await server.call(services.Identity.Probe, {});
    await received.nextLike(/^WATCHDOG=1/);
    await received.nextLike(/^WATCHDOG=1/);
    const stopped = server.stop();
    const last = await received.nextLike(/^STOPPING=1/);
    assert.equal(last, 'STOPPING=1|STATUS=Stopping; calls still in flight: 0');
    await stopped;
    assert.ok(!server.log.some(({ level }) => level === 'warn'), 'nothing went wrong');
  });
}

test('ready is told when clients are answered, not before', { skip }, async (t) => {
  const site = await makeSite(t);
  const address = site.path('notify.sock');
  const received = await listenForNotifications(t, address);
  const told = received.next();
  // The notification says where the socket is; if it came too early, this could not connect.
  const answered = told.then(async () => {
    const client = connect(site.socket);
    await once(client, 'connect');
    client.destroy();
  });
  await site.start({ env: { NOTIFY_SOCKET: address } });
  await answered;
});

test('threads that are stuck on storage are no sign of life', { skip }, async (t) => {
  const site = await makeSite(t);
  // It would want to know where it is, at once.
  await rm(site.path('connections/local.yaml'));
  const pipe = site.path('pipe');
  await promisify(execFile)('mkfifo', [pipe]);
  const rule = `{ keySuffix: zone, source: file, file: ${pipe} }`;
  await writeFile(
    site.path('main.yaml'),
    `driver: proxy\nproxy:\n  configFolder: ${site.path('connections')}\n  nodeTopology: { type: custom, customRules: [${rule}] }\n`,
  );
  const address = site.path('notify.sock');
  const received = await listenForNotifications(t, address);
  const env = { NOTIFY_SOCKET: address, WATCHDOG_USEC: '400000', UV_THREADPOOL_SIZE: '1' };
  const server = await site.start({ env });
  await received.nextLike(/^WATCHDOG=1/);
  // Opening a pipe that nobody writes to takes a thread as long as a dead mount does.
  const info = server.call(services.Node.NodeGetInfo, {});
  await received.nextLike(/^STATUS=The self-check failed: it did not end within 0\.2 s$/);
  const writer = await open(pipe, 'w');
  await writer.writeFile('zone-a');
  await writer.close();
  await info;
  await received.nextLike(/^WATCHDOG=1\|STATUS=Serving again$/);
  await server.stop();
});

test('programs of the host do not learn where to notify', { skip }, async (t) => {
  const site = await makeSite(t);
  const address = site.path('notify.sock');
  const received = await listenForNotifications(t, address);
  await site.standIn('mount', `env > ${site.path('environment')}; exit 1`);
  const env = { NOTIFY_SOCKET: address, WATCHDOG_USEC: '60000000' };
  const server = await site.start({ env });
  await received.next();
  const made = await server.call(services.Controller.CreateVolume, {
    name: 'v1',
    parameters: { connection: 'local' },
    volumeCapabilities: [{ mount: {}, accessMode: { mode: 1 } }],
  });
  await assert.rejects(
    server.call(services.Node.NodePublishVolume, {
      volumeId: made.volume?.volumeId ?? '',
      volumeContext: made.volume?.volumeContext ?? {},
      targetPath: site.path('target'),
      volumeCapability: { mount: {}, accessMode: { mode: 1 } },
    }),
  );
  const environment = await readFile(site.path('environment'), 'utf8');
  assert.match(environment, /^PATH=/m);
  assert.doesNotMatch(environment, /NOTIFY|WATCHDOG/);
});

test('a service manager that is gone stops nothing', { skip }, async (t) => {
  const site = await makeSite(t);
  const server = await site.start({ env: { NOTIFY_SOCKET: site.path('nobody.sock') } });
  await server.logged('the service manager could not be told');
  await server.call(services.Identity.Probe, {});
  await server.stop();
});

test('systemd hands over its socket with the first caller', { skip: needs('systemd-socket-activate') }, async (t) => {
  const site = await makeSite(t);
  const program = [process.execPath, bundlePath, '--config', site.path('main.yaml')];
  const manager = spawn('systemd-socket-activate', ['-l', site.socket, '--fdname', 'csi', ...program], {
    env: { PATH: `${site.path('bin')}:${process.env.PATH}`, SWITCHBOARD_STATE_DIR: site.path('state') },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(manager, 'close');
  const log: string[] = [];
  createInterface(manager.stdout).on('line', (line) => log.push(line));
  await until(async () => (await switchboard(['probe', '--endpoint', `unix://${site.socket}`])).code === 0);
  assert.ok(
    log.some((line) => line.includes('systemd:csi')),
    log.join('\n'),
  );
  manager.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
