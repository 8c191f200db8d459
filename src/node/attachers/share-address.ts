import { isIPv6 } from 'node:net';
import { CallError } from '../../core/errors.ts';
import type { VolumeContext } from '../../core/volume.ts';

export interface ShareAddress {
  /** A host name or an address; IPv6 without brackets. */
  readonly server: string;
  readonly share: string;
}

/**
 * `server` and `share` of a volume context. Throws INVALID_ARGUMENT when one is missing, or could be taken for something else by the mount
 * program. `serverPattern`: what a server may look like besides an IPv6 address.
 */
export function shareAddress(context: VolumeContext, serverPattern: RegExp = /^\w[\w.-]*$/): ShareAddress {
  const server = (context.server ?? '').trim().replace(/^\[(.*)\]$/, '$1');
  const share = context.share ?? '';
  if (!server) throw invalid('has no `server`');
  if (!isIPv6(server) && !serverPattern.test(server)) {
    throw invalid(`has a server ${JSON.stringify(server.slice(0, 100))} that is neither a host name nor an address`);
  }
  if (!share) throw invalid('has no `share`');
  const shown = JSON.stringify(share.slice(0, 200));
  if (/\p{Cc}/u.test(share)) throw invalid(`has a share ${shown} with control characters`);
  const parts = share.split(/[/\\]/);
  if (parts.includes('..') || parts.includes('.')) throw invalid(`has a share ${shown} with . or .. in its path`);
  return { server, share };
}

function invalid(problem: string): CallError {
  return new CallError('INVALID_ARGUMENT', `the volume context ${problem}`);
}
