import type { Mount } from './mount-table.ts';

/** For so many milliseconds after a mount was seen alive it need not be asked again: the kernel's own cache of attributes is as old. */
const validity = 30_000;

/** When mounts were last seen alive, by the clock of performance.now(). */
const seen = new Map<string, number>();

/** Something was wrong with it after all. */
export function forgetAlive(mount: Mount): void {
  seen.delete(keyOf(mount));
}

/** Remembers that a server has just answered for this mount. */
export function noteAlive(mount: Mount): void {
  const now = performance.now();
  const key = keyOf(mount);
  // Insertion order is by age.
  seen.delete(key);
  seen.set(key, now);
  for (const [old, at] of seen) {
    if (now - at <= validity) break;
    seen.delete(old);
  }
}

export function isProvenAlive(mount: Mount): boolean {
  const at = seen.get(keyOf(mount));
  return at !== undefined && performance.now() - at <= validity;
}

/** All mounts that show the same directory of one file system are alive or not. The kernel uses numbers again, but hardly for the same. */
function keyOf({ device, root, fsType, source }: Mount): string {
  return `${device} ${root} ${fsType} ${source}`;
}
