import { findProgram } from './find-program.ts';
import { hostPlace } from './host-place.ts';
import type { LocateOptions } from './locate.ts';
import { searchPath } from './search-path.ts';

/**
 * Whether mounts of a file system type take a helper, `mount.<type>`, that only the host has. mount(8) looks for it in the root that it runs in
 * and does without where the kernel can: such a mount has to run in the host's root.
 */
export async function needsHostsHelper(type: string, { settings, path }: LocateOptions): Promise<boolean> {
  const { strategy = settings.strategy, pid = settings.pid } = settings.programs.mount ?? {};
  if ((strategy !== 'auto' && strategy !== 'loader') || !/^\w[\w.-]*$/.test(type)) return false;
  // fuse.<name> has a helper of its own or that of fuse.
  const helpers = [...new Set([`mount.${type}`, `mount.${type.split('.')[0]}`])];
  if (strategy === 'auto' && (await findAny('/', helpers, searchPath(path, settings.searchPath)))) return false;
  const { place } = await hostPlace(settings.root, pid);
  return place !== undefined && (await findAny(place.root, helpers, settings.searchPath));
}

async function findAny(root: string, programs: readonly string[], directories: readonly string[]): Promise<boolean> {
  for (const program of programs) if (await findProgram(root, program, directories)) return true;
  return false;
}
