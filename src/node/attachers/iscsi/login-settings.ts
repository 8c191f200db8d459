import type { Secrets } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import type { VolumeContext } from '../../../core/volume.ts';
import { nodeSecret } from '../../node-secret.ts';

const prefix = 'node-db.';

/**
 * What a node record says beyond what iscsid.conf wants of all: nobody but this program logs in or out by it, a portal that is gone is given up
 * after 20 s, and only the LUN of the volume is looked for, since the others belong to somebody else.
 */
const own: Readonly<Record<string, string>> = {
  'node.startup': 'manual',
  'node.conn[0].startup': 'manual',
  'node.session.nr_sessions': '1',
  'node.session.scan': 'manual',
  'node.session.initial_login_retry_max': '2',
  'node.conn[0].timeo.login_timeout': '10',
};

export interface LoginSettings {
  /** Of a record that is made for the volume. */
  readonly all: Readonly<Record<string, string>>;
  /** Of a record that somebody else has made: only what it takes to log in. */
  readonly secret: Readonly<Record<string, string>>;
}

/**
 * The settings of a volume's node record; those in secrets (`node-db.node.session.auth.password`, also with the names before it that
 * {@link nodeSecret} knows) win. They go into a file, never into arguments. Throws INVALID_ARGUMENT for a secret that is none, without repeating its
 * value.
 */
export function loginSettings(secrets: Secrets, context: VolumeContext): LoginSettings {
  const given = new Map<string, string>();
  for (const key of Object.keys(secrets)) {
    const name = /(?:^|\/)node-db\.(.*)$/s.exec(key)?.[1];
    const value = name && nodeSecret(secrets, context, `${prefix}${name}`);
    if (name !== undefined && value !== undefined) given.set(name, checked(name, value));
  }
  const method = given.has('node.session.auth.username') ? { 'node.session.auth.authmethod': 'CHAP' } : {};
  const secret = { ...method, ...Object.fromEntries(given) };
  return { all: { ...own, ...secret }, secret };
}

/** Which target a record is of is not for secrets to say. */
const fixed = /^node\.(name|tpgt|conn\[0\]\.(address|port)|discovery_.*)$/;

function checked(name: string, value: string): string {
  const known = /^(node|iface)\.[A-Za-z0-9_.[\]]{1,100}$/.test(name) && !fixed.test(name);
  if (!known) {
    const shown = JSON.stringify(`${prefix}${name}`.slice(0, 80));
    throw new CallError('INVALID_ARGUMENT', `the secret ${shown} names no setting of a node record of iscsiadm's`);
  }
  // Longer lines are cut by iscsiadm, silently.
  if (/\p{Cc}/u.test(value) || value.trim() !== value || value === '' || value.length > 255) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `the value of the secret ${prefix}${name} cannot be written to a node record: it is empty, too long, or has line breaks or spaces around it`,
    );
  }
  return value;
}
