import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { type CallContext, throwIfOver } from '../core/call.ts';
import type { MountCommand } from './mount-command.ts';
import type { NodeTools } from './tools.ts';

const answers = new WeakMap<NodeTools['run'], boolean>();

/**
 * Whether mount(8) gives a bind mount its options before anybody sees it, with open_tree(2), mount_setattr(2) and move_mount(2): util-linux since
 * 2.39, Linux since 5.12. It says nothing when the kernel refuses these and it takes mount(2) instead, as a filter of system calls may make it;
 * so with such a filter the answer is no. Asked once, in the way that `command` itself would be run.
 */
export async function bindsAtOnce(call: CallContext, tools: NodeTools, command: MountCommand): Promise<boolean> {
  const known = answers.get(tools.run);
  if (known !== undefined) return known;
  const answer = hasCalls(release()) && (await isUnfiltered()) && (await usesCalls(call, tools, command));
  answers.set(tools.run, answer);
  return answer;
}

/** `release` is that of uname(2), such as `5.15.0-91-generic`. */
function hasCalls(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return major > 5 || (major === 5 && minor >= 12);
}

async function isUnfiltered(): Promise<boolean> {
  return /^Seccomp:\s*0$/m.test(await readFile('/proc/self/status', 'utf8').catch(() => ''));
}

async function usesCalls(call: CallContext, tools: NodeTools, { source, place }: MountCommand): Promise<boolean> {
  // The rest is not looked at by mount, but decides in which root it runs.
  const args = ['--version', '-o', 'bind', source, place];
  try {
    const { stdout } = await tools.run(call, { program: 'mount', args, timeoutMs: tools.limits.mount });
    return /\bfd-based-mount\b/.test(stdout);
  } catch {
    throwIfOver(call.signal);
    return false;
  }
}
