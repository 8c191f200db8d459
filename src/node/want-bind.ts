import { join, relative } from 'node:path/posix';
import { bindMount } from './bind-mount.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { forgetAlive } from './proven-alive.ts';
import type { NodeTools } from './tools.ts';
import { showsSame, type Wanted, type WantedOptions } from './wanted.ts';

/**
 * A bind mount of a directory or a device node. `source` is free of symbolic links; `below` is the mount in `table` that shows it. The same
 * directory is known again by its place in its file system, so a directory that was removed and made anew is another one.
 */
export function wantBind(
  tools: NodeTools,
  table: MountTable,
  source: string,
  on: Wanted['on'],
  options: WantedOptions,
): Wanted {
  const below = table.covering(source);
  const shown: Mount | undefined = below && { ...below, root: join(below.root, relative(below.mountPoint, source)) };
  const inherited = below?.options ?? [];
  return {
    ...options,
    title: source,
    on,
    key: shown ? `${shown.device} ${shown.root} ${shown.source}` : source,
    inherited,
    home: source,
    matches: (mount) => shown !== undefined && showsSame(mount, shown),
    async mount(call, now, place) {
      try {
        await bindMount(call, tools, now, { ...options, source, place, on, inherited });
      } catch (error) {
        if (below) forgetAlive(below);
        throw error;
      }
    },
  };
}
