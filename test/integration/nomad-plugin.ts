/** The part of a Nomad client that runs a plugin's task: its folders, its environment, its supervision, its fingerprint. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { CallError, type StatusCode, statusCodes } from '../../src/core/errors.ts';
import { ControllerServiceCapability, type Init, NodeServiceCapability } from '../../src/generated/csi.js';
import { type Method, services } from '../../src/generated/services.js';
import { until } from './server-under-test.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const { Identity, Controller, Node } = services;

export interface PluginTask {
  /** The client's state folder, `<data_dir>/client`. */
  readonly stateFolder: string;
  readonly pluginId: string;
  readonly type: 'monolith' | 'controller' | 'node';
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Goes before the command line. */
  readonly under?: readonly string[];
  /** Where the task has the folder of the volumes, when that is not where the host has it. */
  readonly stagePublishBaseDir?: string;
}

export interface Plugin extends PluginTask {
  /** Where the client makes paths for this plugin's volumes: `stage_publish_base_dir` of a raw_exec job is the same path. */
  readonly volumesFolder: string;
  readonly nodeId: string;
  readonly controllerCan: ReadonlySet<string>;
  readonly nodeCan: ReadonlySet<string>;
  readonly logText: string;
  /** `deadlineMs` undefined: none, as the client sends for node calls. */
  call<Request, Response>(
    method: Method<Request, Response>,
    request: Init<Request>,
    deadlineMs?: number,
  ): Promise<Response>;
  /** What the client does every 30 seconds. */
  fingerprint(): Promise<boolean>;
  /** SIGKILL to the task alone, which the client then starts again in the same allocation. */
  killAndRestart(): Promise<void>;
  stop(): Promise<void>;
}

/** Resolves when the plugin is registered: healthy, with a name, fingerprinted. */
export async function startPlugin(task: PluginTask): Promise<Plugin> {
  const allocId = randomUUID();
  const socketFolder = join(task.stateFolder, 'csi/plugins', allocId);
  const volumesFolder = join(task.stateFolder, 'csi', task.type, task.pluginId);
  await mkdir(socketFolder, { recursive: true, mode: 0o700 });
  await mkdir(volumesFolder, { recursive: true, mode: 0o700 });
  const socket = join(socketFolder, 'csi.sock');
  const env = {
    SWITCHBOARD_STATE_DIR: join(task.stateFolder, 'remembered'),
    ...task.env,
    CSI_ENDPOINT: `unix://${socket}`,
    NOMAD_ALLOC_ID: allocId,
    NOMAD_TASK_DIR: join(task.stateFolder, 'task'),
  };
  let logText = '';
  let child: ChildProcess;
  let client: Client;
  let known: { nodeId: string; hasController: boolean; hasNode: boolean } | undefined;
  let controllerCan: ReadonlySet<string> = new Set();
  let nodeCan: ReadonlySet<string> = new Set();

  async function startTask(): Promise<void> {
    known = undefined;
    const [program = '', ...args] = [...(task.under ?? []), process.execPath, main, ...task.args];
    child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        logText += chunk;
      });
    }
    client = new Client(`unix:${socket}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.enable_retries': 0,
      // The client dials again at once.
      'grpc.initial_reconnect_backoff_ms': 20,
      'grpc.max_reconnect_backoff_ms': 100,
    });
    // health_timeout ends this in Nomad, the test runner's limit here.
    await until(async () => {
      assert.equal(child.exitCode, null, logText);
      return await isReady(5000).catch(() => false);
    });
    const { name } = await call(Identity.GetPluginInfo, {}, 1000);
    assert.notEqual(name, '', 'a plugin without a name is not registered');
    assert.ok(await fingerprint());
  }

  function call<Request, Response>(method: Method<Request, Response>, request: Init<Request>, deadlineMs?: number) {
    return new Promise<Response>((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        new Metadata(),
        { deadline: deadlineMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + deadlineMs },
        (error, response) => (response === undefined ? reject(asCallError(error)) : resolve(response)),
      );
    });
  }

  async function isReady(deadlineMs: number): Promise<boolean> {
    return (await call(Identity.Probe, {}, deadlineMs)).ready?.value ?? true;
  }

  async function fingerprint(): Promise<boolean> {
    const wantsController = task.type !== 'node';
    const wantsNode = task.type !== 'controller';
    if (!known) {
      const { capabilities } = await call(Identity.GetPluginCapabilities, {});
      // For the life of the instance.
      const nodeId = wantsNode ? (await call(Node.NodeGetInfo, {})).nodeId : '';
      assert.ok(!wantsNode || nodeId !== '', 'a node without an id is not registered');
      known = { nodeId, hasController: capabilities.some((one) => one.service?.type === 1), hasNode: wantsNode };
    }
    const healthy = await isReady(5000);
    if (wantsController && known.hasController) {
      const { capabilities } = await call(Controller.ControllerGetCapabilities, {});
      controllerCan = namesOf(
        ControllerServiceCapability.RPC.Type,
        capabilities.map(({ rpc }) => rpc?.type),
      );
    }
    if (wantsNode) {
      const { capabilities } = await call(Node.NodeGetCapabilities, {});
      nodeCan = namesOf(
        NodeServiceCapability.RPC.Type,
        capabilities.map(({ rpc }) => rpc?.type),
      );
    }
    return healthy;
  }

  async function end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    client.close();
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
  }

  await startTask();
  return {
    ...task,
    volumesFolder,
    get nodeId() {
      return known?.nodeId ?? '';
    },
    get controllerCan() {
      return controllerCan;
    },
    get nodeCan() {
      return nodeCan;
    },
    get logText() {
      return logText;
    },
    call,
    fingerprint,
    async killAndRestart() {
      await end('SIGKILL');
      await startTask();
    },
    stop: () => end('SIGTERM'),
  };
}

function namesOf(
  names: { readonly [id: number]: string | undefined },
  values: readonly (number | undefined)[],
): ReadonlySet<string> {
  return new Set(values.map((value) => names[value ?? 0] ?? ''));
}

function asCallError(error: ServiceError | null): CallError {
  const codes = Object.keys(statusCodes) as StatusCode[];
  const code = codes.find((name) => statusCodes[name] === error?.code) ?? 'UNKNOWN';
  return new CallError(code, error?.details ?? 'no answer');
}
