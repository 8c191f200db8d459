/** `switchboard doctor`: what this host can do and why not. */
import type { Command } from 'commander';
import { checksWith, examine } from './doctor/examine.ts';
import { checkIdentity, nodeInfoOf } from './doctor/identity.ts';
import { openInspection } from './doctor/open-inspection.ts';
import { countByState, jsonReport, textReport } from './doctor/report.ts';
import { exitCodes } from './exit-codes.ts';
import type { Outcome } from './outcome.ts';
import { withSpinner } from './output/spinner.ts';
import { collect } from './pairs.ts';
import type { Shell } from './shell.ts';
import { systemConfigPath } from './state-directory.ts';

const help = `
Run it as the user, with the environment and in the container that the server runs in. It takes 15 seconds at most,
changes nothing, and shows no secrets. Storage is asked for its free space; network mounts are asked by a child.

  ok       there, and works
  note     not there, and nothing that is configured needs it
  warning  works now, but will not always or not for everybody
  error    something that is configured cannot work

Exit code 0: no errors. 1: there are some.

Examples:
  switchboard doctor
  switchboard doctor --config /etc/switchboard/switchboard.yaml --json`;

export function define(doctor: Command, shell: Shell, outcome: Outcome): void {
  doctor
    .option('--config <file>', `the main configuration file (default: ${systemConfigPath} if it is there)`)
    .option('--driver-config-file <file>', 'the same')
    .option('--endpoint <endpoint>', 'where the server listens (default: where it would)', collect)
    .option('--csi-mode <mode...>', 'controller, node (repeatable; default: both)')
    .option('--host-strategy <strategy>', 'how host programs are run (default: auto)')
    .option('--host-root <directory>', 'where the host’s root directory is mounted (default: /host)')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(async (options: { json?: boolean }, command: Command) => {
      const { inspection, facts } = await openInspection(command.opts(), shell);
      const checks = checksWith((one) => checkIdentity(one, nodeInfoOf(one, facts)));
      const findings = await withSpinner(shell, 'looking at this host', examine(inspection, checks));
      if (countByState(findings).error > 0) outcome.code = exitCodes.failed;
      const colours = shell.outIsTerminal && !shell.env.NO_COLOR;
      shell.out(options.json ? jsonReport(findings) : textReport(findings, shell.columns, colours));
    });
}
