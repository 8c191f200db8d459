/** What there is to measure: this program's forms, any command, any endpoint. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Program, ProgramName } from '../conformance/programs.ts';
import { listenerOf } from './process-tree.ts';
import type { Subject } from './subject.ts';

/** The same work for every plugin: a directory with a mode and an owner of its own. */
const localHostpath = (folder: string) => `driver: local-hostpath
instance_id: bench
local-hostpath:
  shareBasePath: ${join(folder, 'volumes')}
  controllerBasePath: ${join(folder, 'volumes')}
  dirPermissionsMode: "0777"
  dirPermissionsUser: 1000
  dirPermissionsGroup: 1000
`;

/** Names by which the program's forms are chosen. */
export const ownNames = ['direct', 'proxy', 'node', 'deno'] as const;

export function ownSubjects(programs: Readonly<Record<ProgramName, Program | undefined>>): readonly Subject[] {
  const executable = programs.executable;
  const node = programs['bundle on Node'];
  const deno = programs['bundle on Deno'];
  return [
    ...(executable ? [direct('direct', executable), proxy('proxy', executable)] : []),
    ...(node ? [direct('node', node)] : []),
    ...(deno ? [{ ...direct('deno', deno), startOnly: true as const }] : []),
  ];
}

function direct(name: (typeof ownNames)[number], program: Program): Subject {
  return {
    name,
    parameters: {},
    prepare: async (folder) => started(program, folder, await configureDirect(folder)),
  };
}

function proxy(name: (typeof ownNames)[number], program: Program): Subject {
  return {
    name,
    parameters: { connection: 'local' },
    prepare: async (folder) => started(program, folder, await configureProxy(folder)),
  };
}

function started(program: Program, folder: string, config: string) {
  const socket = join(folder, 'csi.sock');
  const args = ['serve', '--driver-config-file', config, '--server-socket', socket, '--csi-name', 'bench.csi'];
  return { command: [...program, ...args], endpoint: `unix://${socket}` };
}

async function configureDirect(folder: string): Promise<string> {
  await mkdir(join(folder, 'volumes'), { recursive: true });
  const file = join(folder, 'local-hostpath.yaml');
  await writeFile(file, localHostpath(folder));
  return file;
}

async function configureProxy(folder: string): Promise<string> {
  const connections = join(folder, 'connections');
  await mkdir(connections, { recursive: true });
  await mkdir(join(folder, 'volumes'), { recursive: true });
  await writeFile(join(connections, 'local.yaml'), localHostpath(folder));
  const file = join(folder, 'proxy.yaml');
  await writeFile(file, `driver: proxy\nproxy:\n  configFolder: ${connections}\n  nodeTopology:\n    type: node\n`);
  return file;
}

/**
 * Any plugin, by a command line for the shell in which `{socket}`, `{config}` (a configuration of local-hostpath that democratic-csi takes too)
 * and `{folder}` (its own, empty) are filled in. The shell must become the program: start it with `exec` where it would not.
 */
export function commandSubject(name: string, line: string, parameters: Readonly<Record<string, string>>): Subject {
  return {
    name,
    parameters,
    async prepare(folder) {
      const socket = join(folder, 'csi.sock');
      const values: Readonly<Record<string, string>> = { socket, config: await configureDirect(folder), folder };
      const filled = line.replaceAll(/\{(\w+)\}/g, (all, key: string) => values[key] ?? all);
      return { command: ['/bin/sh', '-c', filled], endpoint: `unix://${socket}` };
    },
  };
}

/** A plugin that runs already. Its process is found by its unix socket. */
export async function endpointSubject(
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
): Promise<Subject> {
  const path = /^unix:(?:\/\/)?(.+)$/.exec(endpoint)?.[1];
  const pid = path === undefined ? undefined : await listenerOf(path);
  return { name: endpoint, parameters, running: { endpoint, pid } };
}
