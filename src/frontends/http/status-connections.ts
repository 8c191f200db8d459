/** The connections, for the status. */
import type { Space } from './observer.ts';
import type { Answer } from './question.ts';
import type { ObservedDriver } from './sources.ts';
import type { ConnectionTold } from './status.ts';

/** `unknown`: the storage cannot tell. Bytes. */
export type CapacityTold =
  | { readonly state: 'asking' | 'unknown' }
  | {
      readonly state: 'known';
      readonly availableBytes: number;
      readonly maximumVolumeBytes?: number | undefined;
      readonly at: string;
    }
  | { readonly state: 'failed'; readonly problem: string; readonly at: string };

/** The connections whose storage can be asked for its free space; a driver that serves directly is one without a name. */
export function askableConnections(driver: ObservedDriver): readonly string[] {
  if (!driver.connections) return driver.capacity ? [''] : [];
  // A file that was never good has nobody to ask.
  const askable = driver.connections().filter((one) => one.state !== 'broken' || one.driver !== undefined);
  return askable.map(({ name }) => name);
}

/** `space`: what is known of the free space of one that can be asked. */
export function connectionsTold(
  driver: ObservedDriver,
  space: (connection: string) => Answer<Space>,
): readonly ConnectionTold[] {
  const askable = new Set(askableConnections(driver));
  const capacity = (name: string) => (askable.has(name) ? capacityTold(space(name)) : ({ state: 'unknown' } as const));
  if (!driver.connections) {
    const operations = driver.operations().length;
    return [{ name: '', state: 'ok', driver: driver.name, retiring: 0, operations, capacity: capacity('') }];
  }
  return driver.connections().map(({ loadedAt, operations, ...connection }) => ({
    ...connection,
    loadedAt: loadedAt === undefined ? undefined : new Date(loadedAt).toISOString(),
    operations: operations.length,
    capacity: capacity(connection.name),
  }));
}

function capacityTold(answer: Answer<Space>): CapacityTold {
  if (answer.state === 'asking') return { state: 'asking' };
  const at = new Date(answer.at).toISOString();
  if (answer.state === 'failed')
    return { state: 'failed', problem: answer.message.replace(/^connection "[^"]*": /, ''), at };
  if (answer.value === 'unknown') return { state: 'unknown' };
  const { availableBytes, maximumVolumeBytes } = answer.value;
  return { state: 'known', availableBytes, maximumVolumeBytes, at };
}
