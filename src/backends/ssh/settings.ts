import type { HostKeyRules } from './host-key.ts';

/** How a host is reached over SSH. Two connections with equal settings share one. */
export interface SshSettings {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password?: string | undefined;
  /** In any format that OpenSSH writes. */
  readonly privateKey?: string | undefined;
  readonly passphrase?: string | undefined;
  /** Files that hold these, read for each attempt to connect. */
  readonly files?:
    | {
        readonly password?: string | undefined;
        readonly privateKey?: string | undefined;
        readonly passphrase?: string | undefined;
      }
    | undefined;
  /** The socket of an agent. */
  readonly agent?: string | undefined;
  /** Empty: the server's key is not checked. */
  readonly hostKey: HostKeyRules;
  /** Milliseconds between signs of life; three without an answer end the connection. */
  readonly keepaliveMs: number;
  /** Milliseconds that connecting and logging in may take. */
  readonly connectMs: number;
  /** How many commands may run at once; sshd allows 10 unless its `MaxSessions` says otherwise. */
  readonly channels: number;
}
