import type { ZfsHost } from '../../backends/zfs/zfs-host.ts';
import { CallError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { Parameters, Topology } from '../../core/volume.ts';
import type { CapabilityRules } from '../common/capability-check.ts';
import type { NamingOptions } from '../common/volume-id.ts';
import type { ZfsOptions } from './options.ts';
import type { Share } from './share.ts';

/** What the operations of a ZFS driver work with: a row of the product of volumes and shares, and one connection's settings. */
export interface ZfsStore {
  /** The `driver:` name. */
  readonly driver: string;
  readonly instanceId: string | undefined;
  readonly zfs: ZfsHost;
  /** What a volume is: a file system, or a block device. */
  readonly kind: 'filesystem' | 'volume';
  readonly share: Share;
  readonly options: ZfsOptions;
  /** Renders `datasetProperties`, `snapshotProperties` and the names of shares. Nothing is escaped. */
  readonly render: (template: string, values: TemplateValues) => string;
  readonly naming: NamingOptions;
  readonly rules: CapabilityRules;
  /** Where volumes can be used; undefined: everywhere. */
  readonly topology: Topology | undefined;
  /** DeleteVolume leaves volumes as they are. */
  readonly retain: boolean;
  readonly log: Logger;
}

export interface TemplateValues {
  readonly name?: string | undefined;
  readonly parameters: Parameters;
}

/** zfs(8): bytes that the name of a dataset or snapshot may have. */
const mostBytes = 255;

/** Throws INVALID_ARGUMENT for names of datasets and snapshots that ZFS would not take. */
export function requireShortNames(...names: readonly string[]): void {
  const long = names.find((name) => Buffer.byteLength(name) > mostBytes);
  if (long === undefined) return;
  throw new CallError('INVALID_ARGUMENT', `${long} has ${Buffer.byteLength(long)} characters; ZFS takes ${mostBytes}`);
}

/** The dataset of a volume. */
export function volumeDataset(store: ZfsStore, volumeId: string): string {
  return `${store.options.datasetParentName}/${volumeId}`;
}
