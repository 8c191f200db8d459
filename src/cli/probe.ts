/** `switchboard probe`: the liveness probe of any orchestrator that can run a command. */
import type { Command } from 'commander';
import { CallError } from '../core/errors.ts';
import { services } from '../generated/services.js';
import { currentAccount } from './account.ts';
import { connect, type TlsOptions } from './client.ts';
import { clientTarget, defaultEndpoint } from './client-target.ts';
import { withEndpoint } from './endpoint-options.ts';
import { exitCodes } from './exit-codes.ts';
import type { Outcome } from './outcome.ts';
import { parseSeconds } from './parse-seconds.ts';
import { settingReader } from './setting-reader.ts';
import type { Shell } from './shell.ts';

const help = `
Exit code 0: the plugin answers and is ready. 1: it is not.
Without --endpoint it asks at SWITCHBOARD_ENDPOINT or CSI_ENDPOINT, or else at the socket of a server on this machine
that was started without one.

Examples:
  switchboard probe
  switchboard probe --csi-address unix:///csi-data/csi.sock --timeout 3`;

interface ProbeOptions extends TlsOptions {
  readonly timeout: string;
}

export function define(probe: Command, shell: Shell, outcome: Outcome): void {
  withEndpoint(probe)
    .option('--csi-address <address>', 'the same: a path, unix:///path or host:port')
    .option('--csi-version <version>', 'accepted and ignored')
    .option('--timeout <time>', 'not ready when there is no answer after this long', '5')
    .addHelpText('after', help)
    .action(async (options: ProbeOptions, command: Command) => {
      const read = settingReader(command.opts(), shell.env, ['SWITCHBOARD_', 'DEMOCRATIC_CSI_LIVENESS_PROBE_']);
      const named = read.list('endpoint')[0] ?? read.text('csi-address');
      const target = clientTarget(named ?? (await defaultEndpoint(shell.env, currentAccount())));
      const client = await connect(target, options);
      const patience = { signal: new AbortController().signal, timeoutMs: parseSeconds(options.timeout) * 1000 };
      try {
        const { ready } = await client.call(services.Identity.Probe, {}, patience);
        // The specification: a plugin that leaves the field out is ready.
        if (ready?.value !== false) return shell.out('ready\n');
        shell.err(`error: ${target.shown} answers that it is not ready\n`);
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        shell.err(`error: ${error.code}: ${error.message}\n`);
      } finally {
        client.close();
      }
      outcome.code = exitCodes.failed;
    });
}
