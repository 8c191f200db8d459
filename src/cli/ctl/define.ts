/** `switchboard ctl`: a CSI client for people. */
import type { Command } from 'commander';
import { withEndpoint } from '../endpoint-options.ts';
import type { Outcome } from '../outcome.ts';
import type { Shell } from '../shell.ts';
import { defineInfo } from './info.ts';
import { defineNodeCommands } from './node.ts';
import { defineNomadVolumes } from './nomad-volumes.ts';
import { defineRepair } from './repair.ts';
import { inSession, type Run } from './session.ts';
import { defineSnapshots } from './snapshots.ts';
import { defineVolumes } from './volumes.ts';

const help = `
Without --endpoint it talks to SWITCHBOARD_ENDPOINT or CSI_ENDPOINT, or else to the socket of a server on this
machine that was started without one.

Exit codes: 0 done, 1 the call failed, 2 wrong usage, 130 interrupted. Ctrl-C cancels the call at the plugin.
With --json the result is one JSON document: sizes in bytes, times in ISO 8601, unknown values left out.

Examples:
  switchboard ctl create data --size 10Gi --connection nas
  switchboard ctl list
  switchboard ctl stage v:nas/data /mnt/staging && switchboard ctl publish v:nas/data /mnt/data --staging /mnt/staging
  switchboard ctl snapshot v:nas/data before-upgrade
  switchboard ctl create data2 --from-snapshot s:nas/data@before-upgrade --size 10Gi --connection nas
  switchboard ctl nomad-volumes web --count 3 --size 10Gi --connection nas --out volumes`;

export function define(ctl: Command, shell: Shell, outcome: Outcome): void {
  withEndpoint(ctl)
    .usage('<command> [options]')
    .option('--timeout <time>', 'give up waiting for an answer after this long: 30, 5m, 1h', '10m')
    .option('--json', 'print JSON')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', help)
    .helpCommand(false);
  const run: Run = (command, work) => inSession(command, shell, outcome, work);
  defineInfo(ctl, run);
  defineVolumes(ctl, run);
  defineNomadVolumes(ctl, run);
  defineSnapshots(ctl, run);
  defineNodeCommands(ctl, run);
  defineRepair(ctl, shell, outcome);
}
