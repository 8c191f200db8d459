import { posix } from 'node:path';
import type { CapacityQuery } from '../../core/driver.ts';
import type { Capacity } from '../../core/volume.ts';
import { refusal } from '../common/capability-check.ts';
import { isHere } from '../common/reach.ts';
import type { Directory } from './directory.ts';

/** GetCapacity: what is free at the base path, or where it will be made. Nothing for volumes that the driver could not make, or not there. */
export async function directoryCapacity(directory: Directory, query: CapacityQuery): Promise<Capacity> {
  const { node, rules, files, layout } = directory;
  const elsewhere = node && query.topology && !isHere(query.topology, node);
  if (elsewhere || refusal(query.capabilities, rules)) return { availableBytes: 0 };
  for (let path = layout.base; ; path = posix.dirname(path)) {
    const space = await files.space(path);
    if (space) return { availableBytes: space.available };
    if (path === '/') return { availableBytes: 0 };
  }
}
