/** What csi-sanity is run against: the ways in which a user runs the program, each with real volumes in a folder of its own. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Target {
  /** For `--target`. */
  readonly name: string;
  readonly summary: string;
  /** Which of the programs that can be built it runs. */
  readonly program: 'executable' | 'bundle on Deno';
  /** Writes the configuration into `folder` and tells the file for `--driver-config-file`. */
  readonly configure: (folder: string) => Promise<string>;
  /** Class parameters that every volume is created with. */
  readonly parameters: Readonly<Record<string, string>>;
}

const localHostpath = (folder: string) => `driver: local-hostpath
local-hostpath:
  shareBasePath: ${join(folder, 'volumes')}
  controllerBasePath: ${join(folder, 'volumes')}
`;

async function direct(folder: string): Promise<string> {
  const file = join(folder, 'local-hostpath.yaml');
  await mkdir(join(folder, 'volumes'), { recursive: true });
  await writeFile(file, localHostpath(folder));
  return file;
}

async function proxied(folder: string): Promise<string> {
  const connections = join(folder, 'connections');
  await mkdir(connections, { recursive: true });
  await mkdir(join(folder, 'volumes'), { recursive: true });
  await writeFile(join(connections, 'local.yaml'), localHostpath(folder));
  const file = join(folder, 'switchboard.yaml');
  await writeFile(file, `driver: proxy\nproxy:\n  configFolder: ${connections}\n  nodeTopology:\n    type: node\n`);
  return file;
}

const connection = { connection: 'local' };

export const targets: readonly Target[] = [
  {
    name: 'direct',
    summary: 'executable, local-hostpath',
    program: 'executable',
    configure: direct,
    parameters: {},
  },
  {
    name: 'proxy',
    summary: 'executable, local-hostpath behind the proxy',
    program: 'executable',
    configure: proxied,
    parameters: connection,
  },
  {
    name: 'deno',
    summary: 'bundle on Deno, local-hostpath behind the proxy',
    program: 'bundle on Deno',
    configure: proxied,
    parameters: connection,
  },
];
