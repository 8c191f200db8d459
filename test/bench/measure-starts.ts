/** Start-up time and memory, each of a process that has the machine for itself. */
import { mixedCalls } from './cases.ts';
import { type Memory, memoryOf } from './process-tree.ts';
import { openSession } from './session.ts';
import type { Subject } from './subject.ts';
import type { Workplace } from './workplace.ts';

export interface Starts {
  readonly wallMs: number[];
  readonly cpuMs: number[];
  readonly atStart: Memory[];
  readonly afterCalls: Memory[];
}

export interface StartOptions {
  readonly rounds: number;
  /** In how many of the rounds memory after calls is measured. */
  readonly memoryRounds: number;
  readonly onProgress: (text: string) => void;
}

/** Milliseconds after the first Probe until memory is read: what a start leaves for later, such as giving memory back, is then done. */
const settleMs = 1500;

export const callsBeforeMemory = 1000;

/** Starts the subjects in turn. The first round warms the page cache and does not count. */
export async function measureStarts(
  workplace: Workplace,
  subjects: readonly Subject[],
  { rounds, memoryRounds, onProgress }: StartOptions,
): Promise<ReadonlyMap<Subject, Starts>> {
  const results = new Map(subjects.map((subject) => [subject, emptyStarts()]));
  for (let round = 0; round <= rounds; round++) {
    onProgress(`start-up ${round}/${rounds}`);
    for (const [subject, starts] of results) {
      const launched = await workplace.launch(subject);
      if (round > 0) {
        starts.wallMs.push(launched.wallMs);
        starts.cpuMs.push(launched.cpuMs);
        await new Promise((resolve) => setTimeout(resolve, settleMs));
        starts.atStart.push(await memoryOf(launched.plugin.pid));
      }
      if (round > 0 && round <= memoryRounds && !subject.startOnly) {
        const session = await openSession(subject, launched.plugin, launched.folder);
        await mixedCalls(session, callsBeforeMemory);
        starts.afterCalls.push(await memoryOf(launched.plugin.pid));
        await session.close();
      }
      await workplace.end(launched);
    }
  }
  return results;
}

const emptyStarts = (): Starts => ({ wallMs: [], cpuMs: [], atStart: [], afterCalls: [] });
