import type { Secrets } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { VolumeContext } from '../../core/volume.ts';
import { splitFlags } from '../mount-options.ts';
import { nodeSecret } from '../node-secret.ts';
import type { ShareMounting } from './attacher.ts';

type Field = 'username' | 'password' | 'domain';

/** What mount.cifs(8) calls them. */
const fields: Readonly<Record<string, Field>> = {
  username: 'username',
  user: 'username',
  password: 'password',
  pass: 'password',
  domain: 'domain',
  dom: 'domain',
  workgroup: 'domain',
};

type Account = { -readonly [name in Field]?: string };

/**
 * Picks the account out of mount flags and secrets, the later ones winning: the flags, the secret `mount_flags`, the secrets `username`,
 * `password` and `domain`. Without one, and without another way to log in, the mount is a guest's.
 */
export function smbAccount(flags: readonly string[], secrets: Secrets, context: VolumeContext): ShareMounting {
  const account: Account = {};
  const all = [...flags, ...splitSecretFlags(nodeSecret(secrets, context, 'mount_flags') ?? '')];
  const options = all.filter((flag) => !take(account, flag));
  for (const name of ['username', 'password', 'domain'] as const) {
    const value = nodeSecret(secrets, context, name);
    if (value) take(account, `${name}=${value}`);
  }
  refuseSecrets(options);
  const { username, password = '', domain } = account;
  if (!username) {
    if (password && !logsInOtherwise(options)) {
      throw new CallError('INVALID_ARGUMENT', 'there is a password for the share, but no username');
    }
    return { options: logsInOtherwise(options) ? options : [...options, 'guest'] };
  }
  if (/[\0\n]/.test(username + password)) {
    throw new CallError('INVALID_ARGUMENT', 'the username or password for the share has characters that cannot be');
  }
  const named = domain ? [...options, `domain=${checkedDomain(domain)}`] : options;
  return { options: named, env: { USER: username, PASSWD: password } };
}

/** True for a flag that is part of the account. */
function take(account: Account, flag: string): boolean {
  const [, name = '', value = ''] = /^(\w+)=(.*)$/s.exec(flag) ?? [];
  const field = Object.hasOwn(fields, name.toLowerCase()) ? fields[name.toLowerCase()] : undefined;
  if (!field) return false;
  if (field !== 'username') {
    account[field] = value;
    return true;
  }
  // `domain/user` and `domain\user`, as mount.cifs takes them.
  const [, domain, user] = /^([^/\\]*)[/\\](.*)$/s.exec(value) ?? [];
  account.username = user ?? value;
  if (domain) account.domain = domain;
  return true;
}

/**
 * Single options; in a password, a comma is written twice, or the whole within double quotes. Throws INVALID_ARGUMENT for what cannot be an option:
 * it may be the rest of a password.
 */
function splitSecretFlags(text: string): readonly string[] {
  const passwords: string[] = [];
  const rest = text.replace(password, (_all, before: string, name: string, value: string) => {
    const quoted = value.length > 1 && value.startsWith('"') && value.endsWith('"');
    passwords.push(`${name}=${quoted ? value.slice(1, -1) : value.replaceAll(',,', ',')}`);
    return before;
  });
  const flags = /[\0\n]/.test(rest) ? [''] : splitFlags([rest]);
  if (flags.every((flag) => /^[A-Za-z][\w.-]*(=.*)?$/.test(flag))) return [...flags, ...passwords];
  throw new CallError(
    'INVALID_ARGUMENT',
    'the secret mount_flags cannot be split into flags: a comma in a password is written twice, or the password is a secret of its own, `password`',
  );
}

const password = /(^|,)\s*(pass(?:word)?)=(".*?"(?=,|$)|(?:,,|[^,])*)/gi;

/** Other ways to log in than by name and password. */
function logsInOtherwise(options: readonly string[]): boolean {
  return options.some((option) => /^(guest$|cred(entials)?=|sec=(krb5i?|none)$|multiuser$)/i.test(option));
}

function refuseSecrets(options: readonly string[]): void {
  const found = options.find((option) => /^pass/i.test(option));
  if (!found) return;
  throw new CallError('INVALID_ARGUMENT', `the mount flag ${found.replace(/=.*/s, '')} cannot be used`);
}

function checkedDomain(domain: string): string {
  if (/^[\w.-]+$/.test(domain)) return domain;
  throw new CallError('INVALID_ARGUMENT', 'the domain for the share is no name of a domain');
}
