/** Pages of a list that is sorted by id. A token names the last id of its page, so it stays good when entries come and go. */
import { CallError } from '../../core/errors.ts';
import type { PageRequest } from '../../core/volume.ts';

export interface IdPage {
  readonly ids: readonly string[];
  readonly nextToken?: string;
}

const prefix = 'after-';

/** The wanted page of these ids. Throws ABORTED for a token that is not one of ours (CSI spec, ListVolumes Errors). */
export function pageOfIds(ids: readonly string[], request: PageRequest): IdPage {
  return pageOfSorted([...ids].sort(), request);
}

/** The same of ids that are sorted: it costs as much as the page is long. */
export function pageOfSorted(ids: readonly string[], request: PageRequest): IdPage {
  const start = request.token ? firstAfter(ids, readToken(request.token)) : 0;
  const page = ids.slice(start, request.limit ? start + request.limit : undefined);
  const last = page.at(-1);
  const isMore = start + page.length < ids.length;
  return isMore && last !== undefined ? { ids: page, nextToken: writeToken(last) } : { ids: page };
}

function firstAfter(ids: readonly string[], id: string): number {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((ids[middle] ?? '') > id) to = middle;
    else from = middle + 1;
  }
  return from;
}

function writeToken(id: string): string {
  return prefix + Buffer.from(id, 'utf8').toString('base64url');
}

function readToken(token: string): string {
  const id = Buffer.from(token.slice(prefix.length), 'base64url').toString('utf8');
  if (id === '' || writeToken(id) !== token) {
    throw new CallError('ABORTED', 'this starting token was not given out by this list: begin again without one');
  }
  return id;
}
