/**
 * Pages of a list whose names are read in no time, and whose properties are not: of a page, only those are read that are on it. The names are read
 * with the first page and held for the others, so that all pages together cost as much as one long one.
 */
import type { CallContext } from '../../core/call.ts';
import type { Page, PageRequest } from '../../core/volume.ts';
import { pageOfSorted } from '../common/paging.ts';

export interface NamedList<T> {
  /** Ids of everything that might be on the list. */
  ids(call: CallContext): Promise<readonly string[]>;
  /** What is on the list of these; what is gone by now, or is something else, is left out. At most {@link most} at once. */
  read(call: CallContext, ids: readonly string[]): Promise<ReadonlyMap<string, T>>;
}

/** Milliseconds after a page for which the names are held for the next. */
const heldMs = 600_000;

/** Of so many it is sure that their names fit into one command. */
const most = 1000;

export function createNamePages<T>(list: NamedList<T>): (call: CallContext, request: PageRequest) => Promise<Page<T>> {
  let held: { readonly ids: readonly string[]; readonly until: number } | undefined;

  /**
   * A list that was begun is gone on with by the names of then, or of a list that another caller began later: what is there throughout is in both, and
   * both are in the same order.
   */
  async function idsFor(call: CallContext, { token }: PageRequest): Promise<readonly string[]> {
    const isGood = token && held && Date.now() < held.until;
    const ids = isGood && held ? held.ids : [...(await list.ids(call))].sort();
    held = { ids, until: Date.now() + heldMs };
    return ids;
  }

  return async (call, request) => {
    const all = await idsFor(call, request);
    const entries: T[] = [];
    let { token } = request;
    for (;;) {
      const wanted = request.limit ? Math.min(request.limit - entries.length, most) : most;
      const { ids, nextToken } = pageOfSorted(all, { limit: wanted, token });
      const found = ids.length > 0 ? await list.read(call, ids) : new Map<string, T>();
      for (const id of ids) {
        const entry = found.get(id);
        if (entry !== undefined) entries.push(entry);
      }
      if (nextToken === undefined) {
        if (held?.ids === all) held = undefined;
        return { entries };
      }
      if (request.limit && entries.length >= request.limit) return { entries, nextToken };
      token = nextToken;
    }
  };
}
