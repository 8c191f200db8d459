import { writeFile } from 'node:fs/promises';
import { join } from 'node:path/posix';
import type { CallContext } from '../../../core/call.ts';
import { asCallError } from '../../../core/errors.ts';
import type { Subsystem } from './subsystem.ts';

/** Lets the kernel ask a subsystem what namespaces it has and how large they are. It does so in a while: this does not wait. */
export async function rescan(call: Pick<CallContext, 'log'>, { controllers }: Subsystem): Promise<void> {
  const live = controllers.filter(({ state }) => state === 'live');
  const asked = live.map(({ folder }) => writeFile(join(folder, 'rescan_controller'), '1'));
  for (const result of await Promise.allSettled(asked)) {
    // Subsystems also tell by themselves.
    if (result.status === 'rejected') {
      call.log.warn('a subsystem cannot be asked anew', { why: asCallError(result.reason).message });
    }
  }
}
