/** The configuration of a server that was given none: a folder of connections in the state directory, with a first one in it. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type MainConfig, parseMainConfig } from './main-config.ts';

const firstConnection = (
  volumes: string,
) => `# Made because Switchboard was started without a configuration. It is yours now: change it, or add more files
# beside it. Each <name>.yaml in this folder is a connection, and a change counts at once.
${stringify({ driver: 'local-hostpath', 'local-hostpath': { shareBasePath: volumes, controllerBasePath: volumes } })}`;

/** Writes only what is missing. The state directory is for its owner alone: volumes lie in it. */
export async function embeddedConfig(stateDirectory: string): Promise<MainConfig> {
  const configFolder = join(stateDirectory, 'connections');
  const volumes = join(stateDirectory, 'volumes');
  for (const folder of [stateDirectory, configFolder, volumes]) await mkdir(folder, { recursive: true, mode: 0o700 });
  // Who removed the first connection to have others does not want it back.
  if (!(await readdir(configFolder)).some((name) => name.endsWith('.yaml'))) {
    await writeFile(join(configFolder, 'local.yaml'), firstConnection(literal(volumes)), { flag: 'wx' });
  }
  return embeddedMain(stateDirectory);
}

/** The main configuration that goes with that folder. Writes nothing. */
export function embeddedMain(stateDirectory: string): MainConfig {
  const configFolder = join(stateDirectory, 'connections');
  const main = { driver: 'proxy', proxy: { configFolder: literal(configFolder), nodeTopology: { type: 'node' } } };
  return parseMainConfig(stringify(main), 'the built-in configuration', {});
}

/** A dollar in a path is a dollar, not a variable. */
function literal(path: string): string {
  return path.replaceAll('$', '$$$$');
}
