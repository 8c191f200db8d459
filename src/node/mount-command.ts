import type { Command } from '../backends/exec/run.ts';
import type { CallContext } from '../core/call.ts';
import type { NodeTools } from './tools.ts';

export interface MountCommand {
  readonly source: string;
  readonly place: string;
  /** Missing for bind mounts. */
  readonly fsType?: string | undefined;
  readonly options: readonly string[];
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly onAbandoned?: Command['onAbandoned'];
}

/** Runs mount(8) once. */
export async function runMount(call: CallContext, tools: NodeTools, command: MountCommand): Promise<void> {
  const { source, place, fsType, options, env, onAbandoned } = command;
  const args = [
    ...(fsType ? ['-t', fsType] : []),
    ...(options.length > 0 ? ['-o', options.join(',')] : []),
    source,
    place,
  ];
  await call.waitingFor(`\`mount\` of ${source}`, () =>
    tools.run(call, { program: 'mount', args, timeoutMs: tools.limits.mount, env, onAbandoned }),
  );
}

/** Changes options of what is mounted at a place. */
export async function runRemount(
  call: CallContext,
  tools: NodeTools,
  place: string,
  options: readonly string[],
): Promise<void> {
  const args = ['-o', ['remount', ...options].join(','), place];
  await tools.run(call, { program: 'mount', args, timeoutMs: tools.limits.mount });
}
