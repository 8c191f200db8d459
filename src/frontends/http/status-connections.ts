/** The connections, for the status. */
import { askableConnections } from './askable-connections.ts';
import type { Observer, Space } from './observer.ts';
import type { Answer } from './question.ts';
import type { ObservedDriver } from './sources.ts';

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

export interface ConnectionTold {
  readonly name: string;
  readonly state: 'ok' | 'broken' | 'idle' | 'absent';
  readonly driver?: string | undefined;
  readonly file?: string | undefined;
  readonly problem?: string | undefined;
  readonly loadedAt?: string | undefined;
  /** Drivers of earlier versions of the file that still work for somebody. */
  readonly retiring: number;
  /** Work in progress. */
  readonly operations: number;
  readonly capacity: CapacityTold;
}

/** With what is known of their free space. */
export function connectionsTold(driver: ObservedDriver, observer: Observer): readonly ConnectionTold[] {
  const now = new Set(observer.askable());
  const ever = new Set(askableConnections(driver));
  const capacity = (name: string): CapacityTold => {
    if (now.has(name)) return capacityTold(observer.space(name).latest());
    return { state: ever.has(name) ? 'asking' : 'unknown' };
  };
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
