/** A base path as programs of the host see it: in a container they may see the same folder at another path. */
import { posix } from 'node:path';
import type { RunCommand } from '../../backends/exec/run.ts';
import { CallError } from '../../core/errors.ts';
import type { Call } from './directory.ts';

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
    for (const place of places) {
      const path = moved(proof, base, place);
      const { code } = await run(call, {
        program: 'stat',
        args: ['-c', '%F', '--', path],
        timeoutMs: limitMs,
        accept: [0, 1],
      });
      if (code === 0) return place;
    }
    throw new CallError(
      'FAILED_PRECONDITION',
      `the host's programs do not see what this process sees at ${base} (looked at ${places.join(' and ')} there)`,
    );
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
