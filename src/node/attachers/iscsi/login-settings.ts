import type { Secrets } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';

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

/**
 * The settings of a volume's node record; those in secrets (`node-db.node.session.auth.password`) win. They go into a file, never into arguments.
 * Throws INVALID_ARGUMENT for a secret that is none, without repeating its value.
 */
export function loginSettings(secrets: Secrets): Readonly<Record<string, string>> {
  const given = Object.entries(secrets).filter(([key]) => key.startsWith(prefix));
  const settings = Object.fromEntries(given.map(([key, value]) => checked(key.slice(prefix.length), value)));
  const method = settings['node.session.auth.username'] === undefined ? {} : { 'node.session.auth.authmethod': 'CHAP' };
  return { ...own, ...method, ...settings };
}

/** Which target a record is of is not for secrets to say. */
const fixed = /^node\.(name|tpgt|conn\[0\]\.(address|port)|discovery_.*)$/;

function checked(name: string, value: string): readonly [string, string] {
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
  return [name, value];
}
