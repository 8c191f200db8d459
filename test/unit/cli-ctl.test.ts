/** `ctl` against plugins that are not ours: what it sends, and how it takes odd answers. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type handleUnaryCall, Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { services } from '../../src/generated/services.js';
import { switchboard } from './cli-shell.ts';

type Answer = (request: Record<string, unknown>) => object;

interface Plugin {
  readonly endpoint: string;
  readonly requests: Record<string, unknown>[];
}

/** A plugin that answers these methods only. */
async function plugin(
  t: TestContext,
  answers: Record<string, Answer>,
  raw: Record<string, handleUnaryCall<never, never>> = {},
): Promise<Plugin> {
  const folder = await mkdtemp(join(tmpdir(), 'cli-plugin-'));
  const requests: Record<string, unknown>[] = [];
  const server = new Server();
  const handlers = Object.fromEntries(
    Object.entries(answers).map(([name, answer]) => [
      name,
      (call: { request: Record<string, unknown> }, respond: (error: unknown, response?: object) => void) => {
        requests.push(call.request);
        try {
          respond(null, answer(call.request));
        } catch (error) {
          respond(error);
        }
      },
    ]),
  );
  for (const definition of [services.Identity, services.Controller, services.Node]) {
    server.addService(definition as unknown as ServiceDefinition, { ...handlers, ...raw } as never);
  }
  const socket = join(folder, 'csi.sock');
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
  t.after(async () => {
    server.forceShutdown();
    await rm(folder, { recursive: true, force: true });
  });
  return { endpoint: `unix://${socket}`, requests };
}

const ctl = (to: Plugin, ...args: string[]) => switchboard(['ctl', ...args, '--endpoint', to.endpoint]);
const controllerWith = (...types: number[]) => ({ capabilities: types.map((type) => ({ rpc: { type } })) });

describe('ctl', () => {
  test('create sends everything that was said', async (t) => {
    const to = await plugin(t, { CreateVolume: () => ({ volume: { volumeId: 'id' } }) });
    const { code, out } = await ctl(
      to,
      ...'create vol --size 1Gi --limit 2Gi --connection nas --param a=b=c --access rwx --fs-type nfs'.split(' '),
      ...'--mount-flag ro --mount-flag vers=4 --from-volume src --topology z=1,r=2 --topology z=3'.split(' '),
      ...'--secret user=u --json'.split(' '),
    );
    assert.deepEqual([code, JSON.parse(out)], [0, { id: 'id', context: {} }]);
    const [request] = JSON.parse(JSON.stringify(to.requests));
    assert.deepEqual(request, {
      name: 'vol',
      capacityRange: { requiredBytes: 2 ** 30, limitBytes: 2 ** 31 },
      volumeCapabilities: [{ mount: { fsType: 'nfs', mountFlags: ['ro', 'vers=4'] }, accessMode: { mode: 5 } }],
      parameters: { a: 'b=c', connection: 'nas' },
      secrets: { user: 'u' },
      volumeContentSource: { volume: { volumeId: 'src' } },
      accessibilityRequirements: {
        requisite: [{ segments: { z: '1', r: '2' } }, { segments: { z: '3' } }],
        preferred: [{ segments: { z: '1', r: '2' } }, { segments: { z: '3' } }],
      },
      ...{ mutableParameters: request.mutableParameters },
    });
  });

  test('a clone goes to the connection of its source, unless another is named', async (t) => {
    const to = await plugin(t, { CreateVolume: () => ({ volume: { volumeId: 'id' } }) });
    await ctl(to, 'clone', 'v:nas/a', 'b');
    await ctl(to, 'clone', 'v:nas/a', 'b', '--connection', 'other');
    await ctl(to, 'clone', 'plain', 'b');
    assert.deepEqual(
      to.requests.map((request) => ({ ...(request.parameters as object) })),
      [{ connection: 'nas' }, { connection: 'other' }, {}],
    );
  });

  test('get and stage find a volume by listing where a plugin cannot get one', async (t) => {
    const pages: Record<string, object> = {
      '': { entries: [{ volume: { volumeId: 'a' } }], nextToken: 'next' },
      next: { entries: [{ volume: { volumeId: 'b', volumeContext: { server: 'nas' } } }] },
    };
    const to = await plugin(t, {
      ControllerGetCapabilities: () => controllerWith(3),
      ListVolumes: ({ startingToken }) => pages[String(startingToken)] ?? {},
      NodeStageVolume: () => ({}),
    });
    assert.deepEqual(JSON.parse((await ctl(to, 'get', 'b', '--json')).out), { id: 'b', context: { server: 'nas' } });
    assert.equal((await ctl(to, 'get', 'c')).err, 'error: NOT_FOUND: there is no volume c\n');
    const at = await mkdtemp(join(tmpdir(), 'cli-stage-'));
    t.after(() => rm(at, { recursive: true }));
    assert.equal((await ctl(to, 'stage', 'b', at)).code, 0);
    assert.deepEqual({ ...(to.requests.at(-1)?.volumeContext as object) }, { server: 'nas' });
  });

  test('a plugin that does not tell contexts: --context is asked for, and enough', async (t) => {
    const to = await plugin(t, { ControllerGetCapabilities: () => controllerWith(1), NodePublishVolume: () => ({}) });
    const refused = await ctl(to, 'publish', 'b', '/tmp/x/y');
    assert.equal(refused.code, 2);
    assert.match(refused.err, /--context key=value/);
    assert.equal((await ctl(to, 'publish', 'b', '/tmp/y', '--context', 'server=nas')).code, 0);
  });

  test('what a plugin says cannot steer the terminal', async (t) => {
    const to = await plugin(t, {
      ListVolumes: () => ({ entries: [{ volume: { volumeId: 'a\u001b[2J\rb', volumeContext: {} } }] }),
    });
    assert.match((await ctl(to, 'list')).out, /^a\ufffd\[2J\ufffdb /m);
  });

  test('a plugin that is a node only', async (t) => {
    const to = await plugin(t, {
      GetPluginInfo: () => ({ name: 'x', vendorVersion: '1' }),
      Probe: () => ({}),
      GetPluginCapabilities: () => ({}),
      NodeGetCapabilities: () => controllerWith(1),
      NodeGetInfo: () => ({ nodeId: 'n1', maxVolumesPerNode: 8 }),
    });
    const { code, out } = await ctl(to, 'info', '--json');
    assert.equal(code, 0);
    const info = JSON.parse(out);
    assert.deepEqual([info.ready, info.node], [true, { id: 'n1', maxVolumes: 8 }]);
    assert.deepEqual(info.capabilities, { plugin: [], expansion: [], node: ['STAGE_UNSTAGE_VOLUME'] });
    assert.match((await ctl(to, 'info')).out, /^controller +not served$/m);
  });

  test('capabilities that are newer than this client are shown by number', async (t) => {
    const to = await plugin(t, {
      GetPluginInfo: () => ({ name: 'x' }),
      Probe: () => ({ ready: { value: false } }),
      GetPluginCapabilities: () => ({}),
      ControllerGetCapabilities: () => controllerWith(99, 0),
    });
    const { out } = await ctl(to, 'info', '--json');
    assert.deepEqual(JSON.parse(out).capabilities.controller, ['99']);
    assert.equal(JSON.parse(out).ready, false);
  });
});

describe('probe', () => {
  test('ready, not ready, and no word about it', async (t) => {
    const rows = [
      [{ ready: { value: true } }, 0],
      [{ ready: { value: false } }, 1],
      [{}, 0],
    ] as const;
    for (const [answer, code] of rows) {
      const to = await plugin(t, { Probe: () => answer });
      assert.equal((await switchboard(['probe', '--endpoint', to.endpoint])).code, code);
    }
  });

  test('an error, and an answer that does not come', async (t) => {
    const failing = await plugin(t, {
      Probe: () => {
        throw { code: 9, details: 'no zfs here' };
      },
    });
    const { code, err } = await switchboard(['probe', '--endpoint', failing.endpoint]);
    assert.deepEqual([code, err], [1, 'error: FAILED_PRECONDITION: no zfs here\n']);
    const hanging = await plugin(t, {}, { Probe: () => {} });
    const late = await switchboard(['probe', '--endpoint', hanging.endpoint, '--timeout', '0.2']);
    assert.equal(late.code, 1);
    assert.match(late.err, /^error: DEADLINE_EXCEEDED: no answer within 0\.2 s/);
  });
});

describe('interrupting', () => {
  test('Ctrl-C cancels the call at the plugin; exit code 130', async (t) => {
    let cancelled: Promise<unknown> | undefined;
    let child: ChildProcess | undefined;
    const to = await plugin(
      t,
      {},
      {
        CreateVolume: (call) => {
          cancelled = once(call, 'cancelled');
          child?.kill('SIGINT');
        },
      },
    );
    const main = join(import.meta.dirname, '../../src/main.ts');
    const args = [main, 'ctl', 'create', 'slow', '--endpoint', to.endpoint];
    child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => child?.kill('SIGKILL'));
    let err = '';
    child.stderr?.on('data', (chunk) => {
      err += chunk;
    });
    const [code] = await once(child, 'close');
    assert.deepEqual([code, err], [130, 'cancelled\n']);
    await cancelled;
  });
});
