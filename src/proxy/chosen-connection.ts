/** Which connection the parameters of a storage class ask for. */
import type { CallContext } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import type { Parameters } from '../core/volume.ts';
import type { Connection } from './connection.ts';
import { isConnectionName } from './connection-name.ts';
import type { Connections } from './connections.ts';
import { shown } from './handle.ts';
import { useLease } from './lease.ts';

/** The value of the parameter `connection`, or else `proxy.defaultConnection`; undefined when there is neither. */
export function chosenConnection(parameters: Parameters, defaultConnection: string | undefined): string | undefined {
  const own = Object.hasOwn(parameters, 'connection') ? parameters.connection : undefined;
  return own || defaultConnection || undefined;
}

/** Runs `work` on the chosen connection. Throws INVALID_ARGUMENT, naming the connections there are, when none is chosen or there is no such one. */
export async function useChosen<T>(
  call: CallContext,
  connections: Connections,
  name: string | undefined,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  if (name === undefined) {
    throw invalid(`the parameter "connection" is missing: it says where to store; ${await knownNames(connections)}`);
  }
  if (!isConnectionName(name)) {
    throw invalid(`${shown(name)} is not a connection name; ${await knownNames(connections)}`);
  }
  const lease = await connections.find(call, name);
  if (!lease) throw invalid(`there is no connection "${name}"; ${await knownNames(connections)}`);
  return await useLease(lease, work);
}

const mostNamed = 20;

async function knownNames(connections: Connections): Promise<string> {
  const names = await connections.names().catch(() => []);
  if (names.length === 0) return 'no connections are configured';
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  return `known are ${names.slice(0, mostNamed).join(', ')}${more}`;
}

function invalid(message: string): CallError {
  return new CallError('INVALID_ARGUMENT', message);
}
