/** The options of every command that talks to a running plugin. */
import type { Command } from 'commander';

export function withEndpoint(command: Command): Command {
  return command
    .option('--endpoint <endpoint>', 'the plugin: unix:///path or tcp://host:port')
    .option('--tls-ca <file>', 'TLS: the authority that signed the plugin’s certificate')
    .option('--tls-cert <file>', 'TLS: the certificate of this client')
    .option('--tls-key <file>', 'TLS: its key');
}
