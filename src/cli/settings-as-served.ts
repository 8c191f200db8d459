import { access } from 'node:fs/promises';
import { currentAccount } from './account.ts';
import { defaultEndpoint } from './client-target.ts';
import { hostName } from './host-name.ts';
import { type ServeSettings, serveSettings } from './serve-settings.ts';
import type { Flags } from './setting-reader.ts';
import type { Shell } from './shell.ts';
import { systemConfigPath } from './state-directory.ts';
import { CommandError } from './usage-error.ts';

/** As `serve` would have it. Where it would not know where to listen, the usual sockets are looked at. */
export async function settingsAsServed(flags: Flags, shell: Shell): Promise<ServeSettings> {
  const account = currentAccount();
  const machine = {
    ...account,
    hostName: await hostName(shell.env),
    pid: process.pid,
    outIsTerminal: shell.outIsTerminal,
    hasSystemConfig: await access(systemConfigPath).then(
      () => true,
      () => false,
    ),
  };
  try {
    return serveSettings(flags, shell.env, machine);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return serveSettings({ ...flags, endpoint: [await defaultEndpoint(shell.env, account)] }, shell.env, machine);
  }
}
