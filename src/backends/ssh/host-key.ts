/** Whether a server is the one it should be. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CallError, errnoOf } from '../../core/errors.ts';
import { type KnownHosts, parseKnownHosts } from './known-hosts.ts';

/** How a server's key is checked. Both given: one that agrees is enough. */
export interface HostKeyRules {
  /** A file in the format of OpenSSH's known_hosts. */
  readonly knownHostsFile?: string | undefined;
  /** `SHA256:…`, as `ssh-keygen -lf` prints them. */
  readonly fingerprints?: readonly string[] | undefined;
}

export interface HostKeyCheck {
  /** Which kinds of key the server is asked for. Undefined: whatever it prefers. */
  readonly algorithms: readonly string[] | undefined;
  /** Undefined when the key is the right one, or else why it is not. */
  refusal(key: Buffer): string | undefined;
}

/** Reads what the rules need. Throws FAILED_PRECONDITION when the file cannot be read, or says nothing of the host. */
export async function prepareHostKeyCheck(rules: HostKeyRules, host: string, port: number): Promise<HostKeyCheck> {
  const { knownHostsFile, fingerprints } = rules;
  const known = knownHostsFile === undefined ? undefined : await readKnownHosts(knownHostsFile);
  const types = known?.keyTypes(host, port) ?? [];
  if (known && types.length === 0 && !fingerprints) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${knownHostsFile} has no key of ${host}, port ${port}: add what \`ssh-keyscan -p ${port} ${host}\` prints, after comparing it`,
    );
  }
  return {
    algorithms: types.length > 0 && !fingerprints ? types.flatMap(algorithmsOf) : undefined,
    refusal(key) {
      const print = fingerprintOf(key);
      if (!known && !fingerprints) return undefined;
      if (fingerprints?.some((wanted) => wanted.replace(/=+$/, '') === print)) return undefined;
      const found = known?.check(host, port, key);
      if (found === 'known') return undefined;
      const why = found === 'revoked' ? 'which is revoked' : 'which is not the one that is known';
      return `it shows the key ${print}, ${why}: somebody may have put himself in between, or the host was set up anew`;
    },
  };
}

/** `SHA256:…`, as OpenSSH prints it. */
function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}

/** An RSA key signs in several ways (RFC 8332). */
function algorithmsOf(type: string): readonly string[] {
  return type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256', 'ssh-rsa'] : [type];
}

async function readKnownHosts(path: string): Promise<KnownHosts> {
  try {
    return parseKnownHosts(await readFile(path, 'utf8'));
  } catch (error) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `the known hosts in ${path} cannot be read: ${errnoOf(error) ?? error}`,
      {
        cause: error,
      },
    );
  }
}
