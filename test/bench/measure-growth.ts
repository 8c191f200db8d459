/** Whether a plugin grows while it works. */
import { mixedCalls } from './cases.ts';
import { type Memory, memoryOf, openFilesOf } from './process-tree.ts';
import type { Session } from './session.ts';

export interface Sample extends Memory {
  readonly calls: number;
  readonly openFiles: number;
}

export interface GrowthOptions {
  readonly calls: number;
  readonly samples: number;
  readonly onProgress: (text: string) => void;
}

/** Mixed calls, with memory read ten or so times on the way; empty for a plugin whose process is not known. */
export async function measureGrowth(session: Session, options: GrowthOptions): Promise<Sample[]> {
  const { pid } = session.plugin;
  if (pid === undefined) return [];
  const samples: Sample[] = [];
  const perSample = Math.ceil(options.calls / options.samples);
  for (let calls = 0; calls <= options.calls; calls += perSample) {
    if (calls > 0) await mixedCalls(session, perSample);
    samples.push({ calls, ...(await memoryOf(pid)), openFiles: await openFilesOf(pid) });
    options.onProgress(`${session.subject.name}: ${calls} calls, ${samples.at(-1)?.rssMiB.toFixed(1)} MiB`);
  }
  return samples;
}

/** MiB per 100,000 calls, over the second half: the first half fills caches and warms the compiler up. Least squares. */
export function growthPer100k(samples: readonly Sample[]): number {
  const half = samples.slice(Math.floor(samples.length / 2));
  const meanCalls = half.reduce((sum, one) => sum + one.calls, 0) / half.length;
  const meanRss = half.reduce((sum, one) => sum + one.rssMiB, 0) / half.length;
  const above = half.reduce((sum, one) => sum + (one.calls - meanCalls) * (one.rssMiB - meanRss), 0);
  const below = half.reduce((sum, one) => sum + (one.calls - meanCalls) ** 2, 0);
  return (above / below) * 100_000;
}
