/** `switchboard serve`: the command line of the server. */
import { type Command, Option } from 'commander';
import { logLevels } from '../core/logger.ts';
import { delayFailure } from './failure-delay.ts';
import type { Outcome } from './outcome.ts';
import { collect } from './pairs.ts';
import { serveSettings } from './serve-settings.ts';
import { settingReader } from './setting-reader.ts';
import type { Shell } from './shell.ts';
import { systemConfigPath } from './state-directory.ts';
import { thisMachine } from './this-machine.ts';

const help = `
Every option can also be given as SWITCHBOARD_<OPTION> or DEMOCRATIC_CSI_<OPTION>, such as SWITCHBOARD_LOG_LEVEL=debug.
Precedence: option, SWITCHBOARD_…, DEMOCRATIC_CSI_…, CSI_ENDPOINT and sockets inherited from systemd, default.
CSI_NODE_ID is this node's name; without it the host name is, which within a container SWITCHBOARD_HOST_NAME_FILE tells. CSI_VERSION goes before --csi-version.

Without a configuration the server keeps one of its own in SWITCHBOARD_STATE_DIR (root: /var/lib/switchboard, others:
~/.local/share/switchboard), with a first connection to local directories.

SIGTERM and SIGINT stop it: calls in flight are finished or, after --stop-timeout, cancelled. A second one stops it at once.
SIGHUP makes it look at all connection files; the log says what is wrong with them.
Under systemd (Type=notify) it tells when it is ready, alive and stopping.

Examples:
  switchboard
  switchboard --config /etc/switchboard/switchboard.yaml --endpoint unix:///run/switchboard/csi.sock
  switchboard --driver-config-file nfs.yaml --csi-name org.example.nfs --csi-mode node --server-socket /csi/csi.sock`;

export function define(command: Command, shell: Shell, outcome: Outcome): void {
  command
    .usage('[options]')
    .option('--config <file>', `the main configuration file (default: ${systemConfigPath} if it is there)`)
    .option('--driver-config-file <file>', 'the same')
    .option('--endpoint <endpoint>', 'listen on unix:///path or tcp://host:port (repeatable)', collect)
    .option('--server-socket <path>', 'listen on a unix socket: a path or unix:///path')
    .option('--server-socket-permissions-mode <mode>', 'of unix sockets (default: 0600)')
    .option('--server-address <address>', 'listen on TCP, together with --server-port')
    .option('--server-port <port>', 'listen on TCP, together with --server-address')
    .option('--server-tls-cert <file>', 'TLS for TCP: the certificate of this server')
    .option('--server-tls-key <file>', 'TLS for TCP: its key')
    .option('--server-tls-client-ca <file>', 'TLS for TCP: the authority that signs the certificates of clients')
    .option('--allow-insecure-tcp', 'TCP beyond the loopback address without TLS: anyone who can connect commands it')
    .option(
      '--http-endpoint <endpoint>',
      'metrics, health and a status page, such as tcp://127.0.0.1:9808 (default: none)',
    )
    .option('--http-allow-remote', 'these may be read from other hosts, unencrypted')
    .option('--csi-name <name>', 'the plugin’s name (default: org.switchboard.csi)')
    .option('--csi-mode <mode...>', 'controller, node (repeatable; default: both)')
    .option('--csi-version <version>', 'tell only what this version of the CSI specification knows (default: 1.12.0)')
    .option('--log-level <level>', `${logLevels.join(', ')} (default: info)`)
    .addOption(new Option('--log-format <format>', 'json or text (default: text on a terminal, else json)'))
    .option(
      '--host-strategy <strategy>',
      'how host programs are run: auto, direct, chroot, nsenter, loader (default: auto)',
    )
    .option('--host-root <directory>', 'where the host’s root directory is mounted (default: /host)')
    .option('--docker-socket <path>', 'one more unix socket, for Docker alone: /run/docker/plugins/switchboard.sock')
    .option(
      '--docker-default <key=value>',
      'an option of Docker volumes that are made without it (repeatable)',
      collect,
    )
    .option('--docker-scope <scope>', 'global or local (default: global when every node reaches all volumes)')
    .option('--docker-mount-root <directory>', 'where volumes are mounted for Docker (default: in the state directory)')
    .option('--docker-secrets-folder <directory>', 'the files that -o secret.KEY=@FILE may name (default: none)')
    .option('--docker-allow-unseen-mounts', 'mount volumes even where no dockerd would see them')
    .option('--docker-restart-unseen', 'end where no dockerd would see them, to be started again by dockerd')
    .option('--swarm <when>', 'serve CSI as Docker Swarm needs it: auto, on or off (default: auto)')
    .option('--log-file <path>', 'log into this file too')
    .option('--log-file-size <size>', 'of that file, and of the full one before it, <path>.1 (default: 10Mi)')
    .option('--stop-timeout <seconds>', 'for calls in flight to finish when stopped (default: 30)')
    .option('--failure-delay <seconds>', 'a server that fails ends no sooner than this after its start (default: 0)')
    .addHelpText('after', help)
    .action(async () => {
      const failureDelay = settingReader(command.opts(), shell.env).integer('failure-delay', 0, 3600) ?? 0;
      outcome.failed = () => delayFailure(failureDelay);
      const settings = serveSettings(command.opts(), shell.env, await thisMachine(shell));
      const { serve } = await import('./serve.ts');
      outcome.code = await serve(settings, shell);
    });
}
