/** A base path as programs of the host see it: in a container they may see the same folder at another path. */
import { posix } from 'node:path';
import type { RunCommand } from '../../backends/exec/run.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';

/** What steps need of the call they are part of; sweeping has no more than this. */
export type Call = Pick<CallContext, 'signal' | 'log'>;

export interface HostView {
  /**
   * The path of something below the base path for a host program. `proof` is something below it that exists and whose name exists nowhere
   * else. Throws FAILED_PRECONDITION when programs of the host do not see the base path at all.
   */
  pathOf(call: Call, path: string, proof?: string): Promise<string>;
}

const limitMs = 30_000;

/** `base`: as this process sees it. `candidates`: where the host may see it, likeliest first. Found out once. */
export function createHostView(base: string, candidates: readonly string[], run: RunCommand): HostView {
  let found: string | undefined;

  async function find(call: Call, proof: string): Promise<string> {
    const places = [...new Set(candidates)];
    let why: CallError | undefined;
    for (const place of places) {
      try {
        if (await isSeen(call, moved(proof, base, place))) return place;
      } catch (error) {
        // A path that the host has no way to may still be there under its other name.
        if (!(error instanceof CallError && error.code === 'FAILED_PRECONDITION')) throw error;
        why ??= error;
      }
    }
    const message = `the host's programs do not see what this process sees at ${base} (looked at ${places.join(' and ')} there)`;
    throw why ?? new CallError('FAILED_PRECONDITION', message);
  }

  async function isSeen(call: Call, path: string): Promise<boolean> {
    const args = ['-c', '%F', '--', path];
    return (await run(call, { program: 'stat', args, timeoutMs: limitMs, accept: [0, 1] })).code === 0;
  }

  return {
    async pathOf(call, path, proof = path) {
      found ??= await find(call, proof);
      return moved(path, base, found);
    },
  };
}

function moved(path: string, from: string, to: string): string {
  return posix.join(to, posix.relative(from, path));
}
