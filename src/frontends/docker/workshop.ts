/** What the operations of the volume driver have in common: their parts, and what each of them promises. */
import type { CallContext } from '../../core/call.ts';
import type { Catalog } from '../../core/catalog.ts';
import type { Driver } from '../../core/driver.ts';
import type { ShownVolume } from './describe-volume.ts';
import type { LookUp } from './look-up.ts';
import type { MountRecord, MountRecords } from './mount-records.ts';
import type { Options } from './options.ts';
import type { SecretFiles } from './secret-files.ts';
import type { VolumeIndex } from './volume-index.ts';

export type Scope = 'global' | 'local';

export interface VolumeDriverParts {
  readonly driver: Driver;
  readonly catalog: Catalog;
  readonly index: VolumeIndex;
  readonly mounts: MountRecords;
  readonly secrets: SecretFiles;
  /** Throws when Docker does not see what is mounted at a path. */
  readonly requireSeen: (path: string) => Promise<void>;
  /** Options for volumes that are created without. */
  readonly defaults: Options;
  /** Undefined: `global` when every volume can be reached from every node. */
  readonly scope: Scope | undefined;
}

/** The parts and what is made of them: for the operations. */
export interface Workshop extends VolumeDriverParts {
  readonly lookUp: LookUp;
  readonly leftovers: Leftovers;
}

export interface VolumeDriver {
  scope(call: CallContext): Promise<Scope>;
  create(call: CallContext, name: string, options: Options): Promise<void>;
  /** Success when there is none. FAILED_PRECONDITION while it is mounted. */
  remove(call: CallContext, name: string): Promise<void>;
  /** Undefined when there certainly is none. */
  get(call: CallContext, name: string): Promise<ShownVolume | undefined>;
  list(call: CallContext): Promise<readonly Pick<ShownVolume, 'Name' | 'Mountpoint'>[]>;
  /** Where it is mounted; undefined while it is not. */
  path(call: CallContext, name: string): Promise<string | undefined>;
  mount(call: CallContext, name: string, id: string): Promise<string>;
  /** Success when this caller has not mounted it. */
  unmount(call: CallContext, name: string, id: string): Promise<void>;
  /** Takes up what was left undone. */
  readonly leftovers: Leftovers;
}

export type MountNote = Omit<MountRecord, 'format' | 'boot'>;

/** Mounts that nobody wants any more. */
export interface Leftovers {
  /** Unmounts what the record tells of, lets go of it on the storage's side, and removes the record. The caller holds the lock of its name. */
  takeAway(call: CallContext, record: MountNote): Promise<void>;
  /** Takes it away in the background, again and again until that works or somebody has mounted it. */
  takeUpLater(name: string): void;
  /** After a start: everything that is without a caller. */
  takeUpAll(): Promise<void>;
  /** Ends the background work. */
  stop(): void;
}

/** Calls that change what is behind a name come one after the other. */
export const lockOfName = (name: string): string => `docker name ${name}`;

/** So do those that mount a volume or take it away, whatever its name. Taken after the one of the name. */
export const lockOfVolume = (volumeId: string): string => `docker volume ${volumeId}`;
