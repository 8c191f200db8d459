/** All volumes, page after page. */
import { services } from '../../generated/services.js';
import type { Session } from './session.ts';
import { type ShownVolume, volumeShape } from './shapes.ts';

/** `limit`: no more than this many; undefined: all. */
export async function* listVolumes(session: Session, limit?: number): AsyncGenerator<ShownVolume> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let startingToken = '';
  do {
    const page = await session.call('listing volumes', services.Controller.ListVolumes, {
      startingToken,
      maxEntries: entriesWanted(left),
    });
    for (const { volume, status } of page.entries) {
      if (volume && left-- > 0) yield volumeShape(volume, status);
    }
    startingToken = page.nextToken;
  } while (startingToken !== '' && left > 0);
}

/** `max_entries` of the specification: an int32, zero for no limit. */
export function entriesWanted(left: number): number {
  return left > 0x7fffffff ? 0 : left;
}

/** Everything an asynchronous iteration gives. */
export async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
