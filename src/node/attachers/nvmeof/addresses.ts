import { lookup } from 'node:dns/promises';
import { isIP, isIPv6 } from 'node:net';
import { type CallContext, untilOver } from '../../../core/call.ts';
import { asCallError, CallError, errnoOf } from '../../../core/errors.ts';
import { within } from '../../../core/within.ts';
import type { Transport } from './transport.ts';

/** Milliseconds that a name server may take. */
const patienceMs = 3000;

/** The addresses that a transport leads to. The kernel takes no names. Throws UNAVAILABLE. */
export async function addressesOf(call: CallContext, { type, host }: Transport): Promise<readonly string[]> {
  if (type === 'fc' || isIP(host.replace(/%.*$/, '')) !== 0) return [host];
  const found = await within(patienceMs, untilOver(call.signal, lookup(host, { all: true }))).catch(
    (error: unknown) => {
      if (call.signal.aborted) throw error;
      throw new CallError('UNAVAILABLE', `${host} has no address (${errnoOf(error) ?? asCallError(error).message})`);
    },
  );
  if (found === undefined) throw new CallError('UNAVAILABLE', `the name server does not tell the address of ${host}`);
  return found.map(({ address }) => address);
}

/** Whether two texts are one address: IPv6 has several spellings. */
export function isSameAddress(one: string, other: string): boolean {
  return normal(one) === normal(other);
}

function normal(address: string): string {
  const [plain = '', zone] = address.toLowerCase().split('%');
  if (!isIPv6(plain)) return address.toLowerCase();
  const shortest = new URL(`http://[${plain}]`).hostname;
  return zone === undefined ? shortest : `${shortest}%${zone}`;
}
