/** The program as a process of a guest, called from here. */
import { once } from 'node:events';
import { connect } from '../../src/cli/client.ts';
import { clientTarget } from '../../src/cli/client-target.ts';
import type { Init } from '../../src/generated/csi.js';
import type { Method } from '../../src/generated/services.js';
import { type LogLine, readLog } from '../integration/log-lines.ts';
import type { Guest } from './guest.ts';
import { programInGuest } from './program.ts';

export interface Switchboard {
  /** In the guest. */
  readonly pid: number;
  readonly log: readonly LogLine[];
  /** Rejects with CallError. The limit is 60 s unless another is given. */
  call<Request, Response>(
    method: Method<Request, Response>,
    request: Init<Request>,
    options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
  ): Promise<Response>;
  /** Resolves with the next log line of this message. */
  logged(message: string | RegExp): Promise<LogLine>;
  /** SIGKILL. What it has started goes on. */
  kill(): Promise<void>;
  /** SIGTERM; gives the exit code. */
  stop(): Promise<number | null>;
}

export interface SwitchboardOptions {
  /** The configuration file. Without one: local-hostpath, whose node service takes any `node_attach_driver` of a volume context. */
  readonly config?: string;
  /** More files in the folder of the configuration (/run/switchboard/NAME), such as `connections/nas.yaml`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Tells servers of one guest apart. */
  readonly name?: string;
}

const anyVolume = `driver: local-hostpath
local-hostpath:
  shareBasePath: /srv/switchboard
  controllerBasePath: /srv/switchboard
`;

/** Starts it and waits until it is ready. Its state directory is kept from start to start. */
export async function startSwitchboard(guest: Guest, options: SwitchboardOptions = {}): Promise<Switchboard> {
  const { config = anyVolume, files = {}, args = [], env = {}, name = 'main' } = options;
  const folder = `/run/switchboard/${name}`;
  const all: Readonly<Record<string, string>> = { 'main.yaml': config, ...files };
  await guest.run(`mkdir -p ${folder} /srv/switchboard`);
  for (const [path, text] of Object.entries(all)) {
    await guest.run(`cd ${folder} && mkdir -p "$(dirname '${path}')" && cat >'${path}'`, { input: text });
  }
  const socket = `${folder}/csi.sock`;
  const program = await programInGuest();
  const variables = Object.entries({ SWITCHBOARD_STATE_DIR: `/var/lib/switchboard-${name}`, ...env });
  const argv = [...program, 'serve', '--config', `${folder}/main.yaml`, '--endpoint', socket, ...args];
  const exported = variables.map(([key, value]) => `export ${key}=${quoted(value)}`);
  // A new session: it outlives the connection, as a daemon does, and signals for it reach nothing else.
  const command = `${exported.join('; ')}; echo $$ >${folder}/pid; exec ${argv.map(quoted).join(' ')}`;
  const child = guest.start(`exec setsid --wait bash -c ${quoted(command)}`);
  if (!child.stdout || !child.stderr) throw new Error('its output is not here');
  let stderr = '';
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const { lines: log, logged } = readLog(child.stdout);
  await logged('ready').catch(async () => {
    await ended;
    throw new Error(`switchboard did not start: ${stderr}${log.map((line) => JSON.stringify(line)).join('\n')}`);
  });
  const pid = Number(await guest.run(`cat ${folder}/pid`));
  const client = await connect(clientTarget(await guest.forward(socket)));
  const end = async (signal: string) => {
    await guest.run(`kill -${signal} ${pid}`);
    const [code] = await ended;
    client.close();
    return code;
  };
  void ended.then(() => client.close());
  return {
    pid,
    log,
    logged,
    call: (method, request, { timeoutMs = 60_000, signal = new AbortController().signal } = {}) =>
      client.call(method, request, { signal, timeoutMs }),
    kill: async () => void (await end('KILL')),
    stop: () => end('TERM'),
  };
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
