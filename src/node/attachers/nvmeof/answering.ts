import { connect } from 'node:net';
import { reasonOf } from '../../../core/call.ts';
import { asCallError, CallError, errnoOf } from '../../../core/errors.ts';

/** Milliseconds that a portal may take. One that is there answers at once. */
const patienceMs = 3000;

/** That nobody has an address is found out sooner or later, or not at all: it comes to the same. */
const sayings: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  EHOSTUNREACH: 'it does not answer',
  ETIMEDOUT: 'it does not answer',
};

export interface Portal {
  readonly port: string;
  /** The address of this machine to come from. */
  readonly from?: string | undefined;
  /** It speaks TLS first. */
  readonly tls: boolean;
}

/**
 * The first of several addresses where an NVMe target answers over TCP. Linux makes one connection of NVMe at a time, whatever it is for: one that
 * waits for a portal that is dead holds up those of all other volumes. So each is tried out before. Throws UNAVAILABLE.
 */
export async function answering(signal: AbortSignal, addresses: readonly string[], portal: Portal): Promise<string> {
  try {
    return await Promise.any(addresses.map((address) => tryOut(signal, address, portal)));
  } catch (error) {
    if (signal.aborted) throw reasonOf(signal);
    const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
    throw new CallError('UNAVAILABLE', asCallError(first).message, { cause: first });
  }
}

/** Resolves with the address. */
function tryOut(signal: AbortSignal, host: string, { port, from, tls }: Portal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ...(from === undefined ? {} : { localAddress: from }), signal });
    const giveUp = (why: string | Error) => {
      reject(typeof why === 'string' ? new Error(why) : why);
      socket.destroy();
    };
    let connected = false;
    const timer = setTimeout(() => giveUp(connected ? silent : 'it does not answer'), patienceMs);
    socket.once('close', () => clearTimeout(timer));
    socket.once('error', (error) => giveUp(sayings[errnoOf(error) ?? ''] ?? error));
    socket.once('end', () => giveUp(silent));
    const isThere = () => {
      resolve(host);
      socket.destroy();
    };
    socket.once('connect', () => {
      connected = true;
      if (tls) isThere();
      else socket.write(initializeConnection());
    });
    socket.once('data', (answer) => (answer[0] === initializeResponse ? isThere() : giveUp(silent)));
  });
}

const silent = 'something answers there, but not as an NVMe target does';

/** NVM Express TCP Transport Specification, 3.6.2: PDU types and the Initialize Connection Request, 128 bytes. */
const initializeResponse = 0x01;

function initializeConnection(): Buffer {
  const request = Buffer.alloc(128);
  request[2] = request.length;
  request.writeUInt32LE(request.length, 4);
  return request;
}
