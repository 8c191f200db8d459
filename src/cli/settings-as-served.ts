import { defaultEndpoint } from './client-target.ts';
import { type ServeSettings, serveSettings } from './serve-settings.ts';
import type { Flags } from './setting-reader.ts';
import type { Shell } from './shell.ts';
import { thisMachine } from './this-machine.ts';
import { CommandError } from './usage-error.ts';

/** As `serve` would have it. Where it would not know where to listen, the usual sockets are looked at. */
export async function settingsAsServed(flags: Flags, shell: Shell): Promise<ServeSettings> {
  const machine = await thisMachine(shell);
  try {
    return serveSettings(flags, shell.env, machine);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return serveSettings({ ...flags, endpoint: [await defaultEndpoint(shell.env, machine)] }, shell.env, machine);
  }
}
