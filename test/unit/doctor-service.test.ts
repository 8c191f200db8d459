/** What `doctor` makes of sockets, connections, mounts and Docker. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { checkConnections } from '../../src/cli/doctor/connections.ts';
import { checkDocker } from '../../src/cli/doctor/docker-engine.ts';
import { checkLeftovers } from '../../src/cli/doctor/leftovers.ts';
import { checkPropagation } from '../../src/cli/doctor/propagation.ts';
import { checkSockets } from '../../src/cli/doctor/sockets.ts';
import { checkStaleMounts } from '../../src/cli/doctor/stale-mounts.ts';
import { CallError } from '../../src/core/errors.ts';
import { parseEndpoint } from '../../src/frontends/listener/endpoints.ts';
import { aDriver, answer, briefly, connection, machine, only, rootMount } from './doctor-support.ts';

describe('sockets', () => {
  const endpoints = [parseEndpoint('unix:///run/s.sock')];
  const up = async () => ({ name: 'org.x', version: '1', ready: true, milliseconds: 3 });
  const judge = async (file: Parameters<typeof machine>[0]) => (await checkSockets(machine({ endpoints, ...file })))[0];
  const socket = (mode = 0o600) => ({ '/run/s.sock': { kind: 'socket', mode } }) as const;

  test('nobody, somebody, something else', async () => {
    assert.equal((await judge({}))?.state, 'note');
    const good = await judge({ fileTree: socket(), askPlugin: up });
    assert.deepEqual([good?.state, good?.detail], ['ok', 'org.x 1 answers in 3 ms (mode 0600, of user 0 and group 0)']);
    assert.equal((await judge({ fileTree: socket(0o666), askPlugin: up }))?.state, 'warning');
    assert.equal((await judge({ fileTree: { '/run/s.sock': 'a file' } }))?.state, 'error');
    const notReady = async () => ({ ...(await up()), ready: false });
    assert.equal((await judge({ fileTree: socket(), askPlugin: notReady }))?.state, 'error');
  });

  test('a dead socket is not a server that hangs', async () => {
    const failing = (message: string) => () => Promise.reject(new CallError('UNAVAILABLE', message));
    const stale = await judge({
      fileTree: socket(),
      askPlugin: failing('nobody answers on it: the connection was refused.'),
    });
    assert.deepEqual([stale?.state, stale?.detail.slice(0, 5)], ['warning', 'stale']);
    assert.equal((await judge({ fileTree: socket(), askPlugin: failing('no answer within 2.5 s') }))?.state, 'error');
  });
});

describe('connections', () => {
  test('one that hangs is told of, and holds up no other', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let asked = 0;
    let signal: AbortSignal | undefined;
    const good = connection('good', 'd', {
      open: async () => aDriver({ capacity: async () => ({ availableBytes: 2 ** 30 * ++asked }) }),
    });
    const hung = connection('hung', 'd', {
      open: async () =>
        aDriver({
          capacity: (call) => {
            signal = call.signal;
            return new Promise(() => {});
          },
        }),
    });
    const checking = checkConnections(machine({ connections: [hung, good] }));
    while (signal === undefined || asked === 0) await setImmediate();
    t.mock.timers.tick(5000);
    const found = await checking;
    assert.deepEqual(briefly(found), ['error hung', 'ok good']);
    assert.match(only(found, 'hung').detail, /did not answer within 5 s/);
    assert.match(only(found, 'good').detail, /^d: reachable, \d+ ms, 1 GiB free$/);
    assert.equal(signal.aborted, true);
  });

  test('a driver that is wrongly set up, and one that cannot be made; all others are closed', async () => {
    let closed = 0;
    const close = async () => void closed++;
    const probe = () => Promise.reject(new CallError('FAILED_PRECONDITION', 'no such pool'));
    const found = await checkConnections(
      machine({
        connections: [
          connection('wrong', 'd', { open: async () => aDriver({ probe, close }) }),
          connection('broken', 'd', { open: () => Promise.reject(new CallError('UNAVAILABLE', 'no route')) }),
        ],
      }),
    );
    assert.deepEqual(
      found.map((one) => one.detail),
      ['d: no such pool', 'd: no route'],
    );
    assert.ok(found.every((one) => one.state === 'error' && one.advice));
    assert.equal(closed, 1);
  });

  test('a base path on storage that does not answer is not asked from this process', async () => {
    const mountInfo = `${rootMount}2 1 0:50 / /nas rw - nfs4 nas:/v rw\n`;
    const inspection = machine({
      mountInfo,
      connections: [connection('c', 'nfs-client', { basePath: '/nas/v', open: () => assert.fail('asked') })],
    });
    const dead = () => Promise.reject(new CallError('UNAVAILABLE', 'nas:/v is out of reach'));
    const [found] = await checkConnections({ ...inspection, files: { ...inspection.files, space: dead } });
    assert.deepEqual([found?.state, found?.detail], ['error', 'nfs-client: nas:/v is out of reach']);
  });
});

describe('mounts', () => {
  const propagation = async (mountInfo: string) => {
    const fileTree = { '/': { kind: 'directory' }, '/var/lib/kubelet': { kind: 'directory' } } as const;
    return briefly(await checkPropagation(machine({ mountInfo, fileTree })));
  };

  test('propagation', async () => {
    assert.deepEqual(await propagation(rootMount), ['ok root directory', 'ok kubelet’s directory']);
    const own = '1 0 8:1 / / rw - ext4 /dev/sda1 rw\n';
    assert.deepEqual(await propagation(own), ['note root directory', 'warning kubelet’s directory']);
    const bidirectional = `${own}2 1 8:1 /k /var/lib/kubelet rw shared:7 - ext4 /dev/sda1 rw\n`;
    assert.deepEqual((await propagation(bidirectional))[1], 'ok kubelet’s directory');
    const oneWay = bidirectional.replace('shared:7', 'master:7');
    assert.deepEqual((await propagation(oneWay))[1], 'warning kubelet’s directory');
  });

  test('dead, deleted and read-only mounts', async () => {
    const pod = '/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/v/mount';
    const mountInfo = `${rootMount}2 1 0:50 / ${pod} rw - nfs4 nas:/v rw
3 1 0:51 / /mnt/other rw - nfs4 old:/v rw
4 1 8:1 /srv/v/gone//deleted /x rw - ext4 /dev/sda1 rw
5 1 0:52 / /var/lib/kubelet/plugins/kubernetes.io/csi/p/1/globalmount rw - tmpfs t ro
6 1 8:1 /srv/v/fine /y rw - ext4 /dev/sda1 rw
7 1 0:53 / /unrelated rw - tmpfs t ro
`;
    const found = await checkStaleMounts(
      machine({
        mountInfo,
        connections: [connection('c', 'local-hostpath', { basePath: '/srv' })],
        run: async (_call, { args }) => {
          if (args.includes('/mnt/other')) throw new CallError('DEADLINE_EXCEEDED', 'late');
          return answer('4096 1 1 1 1 1\n');
        },
      }),
    );
    const states = briefly(found).toSorted();
    // Of a tree whose only ext4 device may be gone on the machine that the tests run on, only what is deleted is certain.
    assert.ok(states.includes('error /x'), states.join());
    assert.ok(states.includes('warning /mnt/other'), states.join());
    assert.ok(states.includes('error /var/lib/kubelet/plugins/kubernetes.io/csi/p/1/globalmount'), states.join());
    assert.ok(!states.some((one) => one.endsWith(pod) || one.endsWith('/unrelated')), states.join());
    assert.match(only(found, '/mnt/other').detail, /old:\/v is out of reach: it does not answer/);
  });

  test('work that nobody finishes', async () => {
    const work = 'abc.4026531836.1.1-0123456789ab';
    const at = (age: number) =>
      machine({
        connections: [connection('c', 'local-hostpath', { basePath: '/srv' })],
        fileTree: {
          '/srv/.switchboard/tmp': { kind: 'directory', names: [work] },
          [`/srv/.switchboard/tmp/${work}`]: { kind: 'directory', modified: machine().now() - age },
        },
      });
    const [fresh] = await checkLeftovers(at(7_200_000));
    assert.deepEqual(
      [fresh?.state, fresh?.detail],
      ['note', '1 unfinished in /srv/.switchboard/tmp, the oldest for 2 h'],
    );
    assert.equal((await checkLeftovers(at(200_000_000)))[0]?.state, 'warning');
  });
});

describe('docker', () => {
  const fileTree = { '/var/run/docker.sock': { kind: 'socket' } } as const;
  const judge = async (version: unknown) => {
    const body = JSON.stringify({ Version: version, Components: [{ Name: 'Engine' }] });
    return (await checkDocker(machine({ fileTree, httpGet: async () => body })))[0]?.state;
  };

  test('versions in which Swarm can use no CSI plugin', async () => {
    for (const bad of ['26.0.0', '26.1.5+dfsg1', '27.5.1', '28.0.4', '28.1.1'])
      assert.equal(await judge(bad), 'warning', bad);
    for (const good of ['23.0.0', '25.0.5', '28.2.0', '28.2.0-rc.1', '28.5.2', '29.0.0'])
      assert.equal(await judge(good), 'ok', good);
    assert.equal(await judge('20.10.24'), 'note');
    assert.equal(await judge(undefined), 'note');
  });

  test('a socket that does not answer, or not with what it should; no Docker at all', async () => {
    for (const httpGet of [() => Promise.reject(new Error('refused')), async () => 'null', async () => '<html>']) {
      assert.equal((await checkDocker(machine({ fileTree, httpGet })))[0]?.state, 'warning');
    }
    const locate = async (program: string) => ({ program, strategy: undefined, passed: [] });
    assert.deepEqual(await checkDocker(machine({ locate })), []);
    const run = async () => answer('Docker version 27.1.0, build x');
    assert.equal((await checkDocker(machine({ run })))[0]?.state, 'warning');
  });
});
