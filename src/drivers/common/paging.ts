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
  const after = request.token ? readToken(request.token) : '';
  const rest = ids.filter((id) => id > after).sort();
  const page = request.limit ? rest.slice(0, request.limit) : rest;
  const last = page.at(-1);
  return page.length < rest.length && last !== undefined ? { ids: page, nextToken: writeToken(last) } : { ids: page };
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
