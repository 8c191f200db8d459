/** `switchboard node`: this node's side of volumes, without a server. */

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { createRunner } from '../backends/exec/runner.ts';
import { makePlane } from '../node/plane.ts';
import { hostSettings } from './host-options.ts';
import { hostTools } from './host-tools.ts';
import { loadMainConfig } from './main-config.ts';
import { type CleanupOptions, cleanup } from './node/cleanup.ts';
import type { Outcome } from './outcome.ts';
import type { Flags } from './setting-reader.ts';
import { settingsAsServed } from './settings-as-served.ts';
import type { Shell } from './shell.ts';
import { systemConfigPath } from './state-directory.ts';

const help = `
Run it as the user, with the environment and in the container that the server runs in; the server may be running. What a server staged is
remembered in SWITCHBOARD_STATE_DIR until it is unstaged. Left over is what is remembered and not mounted any more, or mounted and dead: after
a crash, a reboot, or when the orchestrator forgot a volume. Each is detached by what its record tells, and the record removed. Nothing that
is in use is touched: neither what is mounted and alive, nor a device that anybody on this machine uses, nor what is mounted from a server that
does not answer: that is shown, and left.

Exit code 0: nothing is left over. 1: something still is, or may be.

Examples:
  switchboard node cleanup
  switchboard node cleanup --yes --json`;

export function define(node: Command, shell: Shell, outcome: Outcome): void {
  node
    .command('cleanup')
    .description('Show what is left over of staged volumes, ask, and take it away')
    .option('--yes', 'do not ask')
    .option('--dry-run', 'only show it')
    .option('--json', 'print JSON; needs --yes or --dry-run')
    .option('--config <file>', `the main configuration file (default: ${systemConfigPath} if it is there)`)
    .option('--driver-config-file <file>', 'the same')
    .option('--host-strategy <strategy>', 'how host programs are run (default: auto)')
    .option('--host-root <directory>', 'where the host’s root directory is mounted (default: /host)')
    .addHelpText('after', help)
    .action(async (options: CleanupOptions, command: Command) => {
      outcome.code = await cleanup(await openPlane(command.opts(), shell), options, shell);
    });
}

async function openPlane(flags: Flags, shell: Shell) {
  const { env } = shell;
  const settings = await settingsAsServed(flags, shell);
  const { configPath } = settings;
  // How programs of the host are reached; what else it says, and whether it is right, does not matter here.
  const main = configPath === undefined ? undefined : await loadMainConfig(configPath, env).catch(() => undefined);
  const host = hostSettings(settings.host, main?.host, env, () => {});
  const { strategy, placeOf } = hostTools(host, env);
  const run = createRunner({ env, strategy, placeOf, searchPath: host.searchPath });
  return makePlane({ run, stateDirectory: resolve(settings.stateDirectory) });
}
