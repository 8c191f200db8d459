import type { CallContext } from '../core/call.ts';
import type { Mount, MountTable } from './mount-table.ts';
import { familyOf } from './share-source.ts';

/** A mount as it should be: how to know it when it is there, and how to make it. The makers are the `want-*.ts` modules. */
export interface Wanted {
  /** What is mounted, for people: `/data/v/x`, `nas1:/tank/v1`, `/dev/sdb`. */
  readonly title: string;
  /** What it is mounted on. */
  readonly on: 'directory' | 'file';
  /** Equal for all mounts of one volume that are made in the same way. */
  readonly key: string;
  readonly readonly: boolean;
  /** Options of the request and the configuration, as single options. */
  readonly flags: readonly string[];
  /** Options that the mount has from what it is made of. Undefined: not known, anything beyond the flags is fine. */
  readonly inherited?: readonly string[] | undefined;
  /** A place where the volume is to be seen although nobody mounted it there for a request. */
  readonly home?: string | undefined;
  /** Whether a mount shows this. */
  matches(mount: Mount): boolean;
  /** Tells of any mount, asked later, whether it shows the volume, in this way or another. Default: {@link Wanted.matches}. */
  shownBy?(): Promise<(mount: Mount) => boolean>;
  /** Called when it could not be mounted: takes back what was done for that. */
  failed?(): Promise<void>;
  /** Mounts it. `table` is as it was a moment before. */
  mount(call: CallContext, table: MountTable, place: string): Promise<void>;
}

export interface WantedOptions {
  readonly readonly: boolean;
  readonly flags: readonly string[];
}

/**
 * Whether two mounts show the same: the same file system, the same directory or file in it, from the same source. A share is the same whether
 * the kernel has one file system for its mounts or several.
 */
export function showsSame(one: Mount, other: Mount): boolean {
  if (one.root !== other.root || one.source !== other.source) return false;
  return one.device === other.device || (one.fsType === other.fsType && familyOf(one.fsType) !== undefined);
}
