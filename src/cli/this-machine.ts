import { access } from 'node:fs/promises';
import { currentAccount } from './account.ts';
import { hostName } from './host-name.ts';
import type { Machine } from './serve-settings.ts';
import type { Shell } from './shell.ts';
import { systemConfigPath } from './state-directory.ts';

/** The machine on which this process runs. */
export async function thisMachine(shell: Shell): Promise<Machine> {
  return {
    ...currentAccount(),
    hostName: await hostName(shell.env),
    pid: process.pid,
    outIsTerminal: shell.outIsTerminal,
    hasSystemConfig: await access(systemConfigPath).then(
      () => true,
      () => false,
    ),
  };
}
