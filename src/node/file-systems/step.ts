/** Running a file system's programs. */
import type { CallContext } from '../../core/call.ts';
import type { NodeTools } from '../tools.ts';
import type { Step } from './file-system.ts';

/** Runs one of them, which ends with its call and its time. */
export async function runStep(call: CallContext, tools: NodeTools, step: Step): Promise<void> {
  await waiting(call, step, () => tools.run(call, { ...step, timeoutMs: tools.limits.filesystem }));
}

/**
 * Runs one that must not stop half-way, for what it leaves then is neither blank nor a file system, or is damaged. It has no time limit, and goes on when
 * its call is over or this process ends.
 */
export async function runToItsEnd(call: CallContext, tools: NodeTools, step: Step): Promise<void> {
  const { log } = call;
  const { signal } = new AbortController();
  await waiting(call, step, () =>
    tools.run({ signal, log }, { ...step, timeoutMs: Number.POSITIVE_INFINITY, outlives: true }),
  );
}

async function waiting(call: CallContext, step: Step, work: () => Promise<unknown>): Promise<void> {
  const target = step.args.find((argument) => argument.startsWith('/')) ?? '';
  await call.waitingFor(`\`${step.program}\` of ${target}`, work);
}
