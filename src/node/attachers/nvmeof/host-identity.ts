import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { readHostFile } from '../../../backends/exec/host-file.ts';
import { CallError } from '../../../core/errors.ts';
import { isPlainValue } from './connect-options.ts';
import { ownUuid } from './own-uuid.ts';

/** What a subsystem knows this machine by: it decides by it who may connect, and who holds a reservation. */
export interface HostIdentity {
  readonly nqn: string;
  /** A UUID. Linux refuses one NQN with two of them. */
  readonly id: string;
}

export interface HostPlaces {
  readonly sysfs: string;
  /** Where the host's root directory is mounted, if it is. */
  readonly hostRoot: string;
  /** The folder of hostnqn and hostid. */
  readonly folder: string;
}

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const uuidNqn = 'nqn.2014-08.org.nvmexpress:uuid:';

/**
 * The host's names: of /etc/nvme, as nvme-cli keeps them, or else made of the machine's own UUID, as nvme-cli makes them. Nothing is made up: a
 * name that another machine has too loses data. Throws FAILED_PRECONDITION when there is none.
 */
export async function hostIdentity(places: HostPlaces): Promise<HostIdentity> {
  const [nqn, id] = await Promise.all(['hostnqn', 'hostid'].map((name) => hostLine(places, name)));
  const ofMachine = nqn ? undefined : await machineUuid(places);
  const found = nqn || (ofMachine && `${uuidNqn}${ofMachine}`);
  if (!found || !isPlainValue(found)) {
    const problem = found ? 'has no NQN in it' : 'is not there, and this machine has no UUID of its own';
    throw new CallError(
      'FAILED_PRECONDITION',
      `${places.folder}/hostnqn ${problem}: write the output of \`nvme gen-hostnqn\` into it, on this host alone`,
    );
  }
  return { nqn: found, id: id && uuidForm.test(id) ? id.toLowerCase() : idOf(found) };
}

/** nvme-cli gives both names one UUID; for an NQN of another form the same one is made each time. */
export function idOf(nqn: string): string {
  const own = nqn.startsWith(uuidNqn) ? nqn.slice(uuidNqn.length) : '';
  if (uuidForm.test(own)) return own.toLowerCase();
  const digits = createHash('sha256').update(nqn).digest('hex');
  // RFC 9562, version 8: made by a rule of our own.
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `a${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join('-');
}

async function hostLine({ folder, hostRoot }: HostPlaces, name: string): Promise<string | undefined> {
  const content = await readHostFile(join(folder, name), hostRoot).catch(() => undefined);
  return content?.split('\n')[0]?.trim();
}

async function machineUuid({ sysfs }: HostPlaces): Promise<string | undefined> {
  return ownUuid(await readFile(join(sysfs, 'class/dmi/id/product_uuid'), 'utf8').catch(() => ''));
}
