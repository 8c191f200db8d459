/** A server with an HTTP door in this process, over connections some of which are in trouble. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { parseMainConfig } from '../../src/cli/main-config.ts';
import { type RunningServer, startServer } from '../../src/cli/server.ts';
import { createLogger } from '../../src/core/logger.ts';
import type { Status } from '../../src/frontends/http/status.ts';
import { type Finished, switchboard } from '../unit/cli-shell.ts';

export interface Site {
  readonly folder: string;
  readonly server: RunningServer;
  /** Without a slash at the end. */
  readonly url: string;
  /** Log lines so far. */
  readonly log: readonly Record<string, unknown>[];
  get(path: string, options?: RequestInit): Promise<{ status: number; text: string; headers: Headers }>;
  status(): Promise<Status>;
  /** `switchboard ctl …` against it. */
  ctl(...args: string[]): Promise<Finished>;
  /** Sends bytes over a connection of its own and resolves with everything that came back when the server has closed it. */
  raw(bytes: string): Promise<string>;
  connect(name: string, text?: string): Promise<void>;
}

export interface SiteOptions {
  readonly connections?: Readonly<Record<string, string | undefined>>;
  /** Text of the main file below `proxy:`, indented by two. */
  readonly proxy?: string;
  /** Empty: there is no HTTP door. */
  readonly endpoint?: string;
  /** One driver without a proxy. */
  readonly direct?: boolean;
  readonly allowRemote?: boolean;
  readonly nodeName?: string;
}

export async function startSite(t: TestContext, options: SiteOptions = {}): Promise<Site> {
  const folder = await mkdtemp(join(tmpdir(), 'http-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['connections', 'bin']) await mkdir(join(folder, name));
  const write = (name: string, text = localDirectories(join(folder, 'data', name))) =>
    writeFile(join(folder, 'connections', `${name}.yaml`), text);
  for (const [name, text] of Object.entries(options.connections ?? { local: undefined })) await write(name, text);
  const log: Record<string, unknown>[] = [];
  const proxy = `driver: proxy\nproxy:\n  configFolder: ${join(folder, 'connections')}\n${options.proxy ?? '  nodeTopology: { type: node }\n'}`;
  const main = options.direct ? localDirectories(join(folder, 'data')) : proxy;
  const http = { endpoint: options.endpoint ?? 'tcp://127.0.0.1:0', allowRemote: options.allowRemote ?? false };
  const endpoint = `unix://${join(folder, 'csi.sock')}`;
  const server = await startServer({
    config: parseMainConfig(main, 'main.yaml', {}),
    settings: {
      csiName: 'org.example.test',
      nodeName: options.nodeName ?? 'worker-3',
      specMinor: 12,
      modes: { controller: true, node: true },
      endpoints: [endpoint],
      socketMode: 0o600,
      tls: undefined,
      allowInsecureTcp: false,
      http: http.endpoint === '' ? undefined : http,
    },
    env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` },
    log: createLogger({ level: 'debug', format: 'json', write: (line) => log.push(JSON.parse(line)) }),
  });
  t.after(() => server.stop(0));
  const url = server.httpAddresses[0] ?? '';
  const get = async (path: string, request: RequestInit = {}) => {
    const response = await fetch(url + path, request);
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  return {
    folder,
    server,
    url,
    log,
    get,
    status: async () => JSON.parse((await get('/status.json')).text) as Status,
    ctl: (...args) => switchboard(['ctl', ...args], { CSI_ENDPOINT: endpoint }),
    async raw(bytes) {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      let said = '';
      socket.setEncoding('latin1').on('data', (chunk) => {
        said += chunk;
      });
      socket.on('error', () => {});
      socket.write(bytes);
      await once(socket, 'close');
      return said;
    },
    connect: write,
  };
}

/** The text of a connection file. A snapshot whose copy hangs stays a call, however long that takes. */
function localDirectories(base: string): string {
  return `driver: local-hostpath
local-hostpath:
  shareBasePath: ${base}
  controllerBasePath: ${base}
  snapshots: { answer_within: 600 }
`;
}

/** From now on \`cp\` hangs; resolves with a function that waits until one does. */
export async function hangingCopies({ folder }: Site): Promise<() => Promise<void>> {
  const pipe = join(folder, 'reached');
  await promisify(execFile)('mkfifo', [pipe]);
  const script = `#!/bin/sh\necho reached > ${pipe}\nexec sleep 600\n`;
  await writeFile(join(folder, 'bin/cp'), script);
  await chmod(join(folder, 'bin/cp'), 0o755);
  return async () => void (await promisify(execFile)('cat', [pipe]));
}
