/** The name of this host. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { errnoOf } from '../core/errors.ts';
import type { Shell } from './shell.ts';
import { CommandError } from './usage-error.ts';

/** The content of the file SWITCHBOARD_HOST_NAME_FILE, which is the host's /etc/hostname within a container; else what the kernel says. */
export async function hostName(env: Shell['env']): Promise<string> {
  const path = env.SWITCHBOARD_HOST_NAME_FILE;
  if (!path) return hostname();
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new CommandError(
      `SWITCHBOARD_HOST_NAME_FILE: ${path} cannot be read (${errnoOf(error)})`,
      'Give the node a name by CSI_NODE_ID.',
    );
  });
  const name = text.trim();
  if (name !== '') return name;
  throw new CommandError(`SWITCHBOARD_HOST_NAME_FILE: ${path} is empty`, 'Give the node a name by CSI_NODE_ID.');
}
