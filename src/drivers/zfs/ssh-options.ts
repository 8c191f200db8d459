/** The `sshConnection` block of the configuration. */
import * as v from 'valibot';
import type { SshSettings } from '../../backends/ssh/settings.ts';
import { secret } from '../../config/secret.ts';

const text = v.pipe(v.union([v.string(), v.number()], 'a text'), v.transform(String));

export const sshConnection = v.object({
  host: v.string('a host name or address'),
  port: v.optional(
    v.pipe(
      v.union([v.number(), v.string()], 'a port'),
      v.transform(Number),
      v.integer(),
      v.minValue(1),
      v.maxValue(65_535),
    ),
    22,
  ),
  username: v.optional(v.string(), 'root'),
  password: v.optional(secret(text)),
  privateKey: v.optional(secret(v.string())),
  passphrase: v.optional(secret(text)),
  /** Files that hold what the keys above hold: read when the connection is made, so that they can be exchanged. */
  passwordFile: v.optional(v.string()),
  privateKeyFile: v.optional(v.string()),
  passphraseFile: v.optional(v.string()),
  /** The socket of an SSH agent; `env` is the one of SSH_AUTH_SOCK. */
  agent: v.optional(v.string()),
  /** Milliseconds. */
  keepaliveInterval: v.optional(v.pipe(v.number(), v.minValue(0)), 10_000),
  readyTimeout: v.optional(v.pipe(v.number(), v.minValue(1)), 20_000),
  /** Commands at once. Fewer than the server's `MaxSessions`, which is 10 unless it is told otherwise. */
  maxChannels: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 8),
  /** The server's key is checked when one of these is there. */
  knownHostsFile: v.optional(v.string()),
  hostKeyFingerprints: v.optional(
    v.array(v.pipe(v.string(), v.regex(/^SHA256:[A-Za-z0-9+/]{43}=?$/, 'SHA256:…, as `ssh-keygen -lf` prints it'))),
  ),
  debug: v.optional(v.boolean()),
});

/** The block as the backend wants it. Its files are not read here. */
export function sshSettings(options: v.InferOutput<typeof sshConnection>): SshSettings {
  const { host, port, username, password, privateKey, passphrase, agent } = options;
  return {
    host,
    port,
    username,
    password,
    privateKey,
    passphrase,
    files: { password: options.passwordFile, privateKey: options.privateKeyFile, passphrase: options.passphraseFile },
    agent: agent === 'env' ? process.env.SSH_AUTH_SOCK : agent,
    hostKey: { knownHostsFile: options.knownHostsFile, fingerprints: options.hostKeyFingerprints },
    keepaliveMs: options.keepaliveInterval,
    connectMs: options.readyTimeout,
    channels: options.maxChannels,
  };
}
