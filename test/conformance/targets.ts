/** What csi-sanity is run against: the ways in which a user runs the program, each with real volumes in a folder of its own. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Target {
  readonly name: string;
  /** The program and its first arguments. */
  readonly command: readonly string[];
  /** Writes the configuration into `folder` and tells the file of `--driver-config-file`. */
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

/** @param commands how the executable and the bundle under Deno are started */
export function targets(commands: { executable: readonly string[]; deno: readonly string[] }): readonly Target[] {
  const connection = { connection: 'local' };
  return [
    { name: 'executable, local-hostpath', command: commands.executable, configure: direct, parameters: {} },
    { name: 'executable, proxy', command: commands.executable, configure: proxied, parameters: connection },
    { name: 'bundle under Deno, proxy', command: commands.deno, configure: proxied, parameters: connection },
  ];
}
