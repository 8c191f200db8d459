/**
 * Who is working on something, written so that another process can tell whether that worker still lives.
 *
 * A process number alone says little: it may belong to another machine that shares the base path, to another container, or to a later
 * process. So an owner is the machine's boot, the process number namespace, the number in it, and the moment the process began.
 */
import { readFile, readlink } from 'node:fs/promises';

/** `<boot>.<namespace>.<pid>.<start>`: letters, digits and dots only. */
export type Owner = string;

let mine: Promise<Owner> | undefined;

/** This process as an owner. */
export function thisOwner(): Promise<Owner> {
  mine ??= readOwner();
  return mine;
}

async function readOwner(): Promise<Owner> {
  // The number as /proc shows it, which in a container with the machine's own /proc is not process.pid.
  const [place, pid] = await Promise.all([readPlace(), readlink('/proc/self')]);
  const started = await startOf(pid);
  return `${place}.${pid}.${started ?? 0}`;
}

/** `dead` and `alive` are certain. `unknown`: it ran on another machine, before a reboot, or in another container. */
export async function lifeOf(owner: Owner): Promise<'alive' | 'dead' | 'unknown'> {
  const [boot, namespace, pid, started] = owner.split('.');
  if (!pid || !started || `${boot}.${namespace}` !== (await readPlace())) return 'unknown';
  return (await startOf(pid)) === started ? 'alive' : 'dead';
}

let place: Promise<string> | undefined;

function readPlace(): Promise<string> {
  place ??= (async () => {
    const [boot, namespace] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readlink('/proc/self/ns/pid'),
    ]);
    return `${boot.replace(/[^0-9a-f]/g, '').slice(0, 12)}.${namespace.replace(/\D/g, '')}`;
  })();
  return place;
}

/** When a process began, in clock ticks since boot: field 22 of proc_pid_stat(5). Undefined: there is none, or it is a zombie. */
async function startOf(pid: string): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
