/** What a snapshot is kept by. There are three: copies in folders beside the volumes, and two programs that keep repositories. */
import type { CallContext } from '../../../core/call.ts';
import type { Snapshot, SnapshotSpec } from '../../../core/volume.ts';
import type { CopyProgress } from '../copy-progress.ts';
import type { Call } from '../directory.ts';
import type { SnapshotDriver } from '../options.ts';
import type { Source } from '../source.ts';

/** A snapshot to be taken. */
export interface SnapshotTask {
  readonly spec: SnapshotSpec;
  /** Names it before it is there (see {@link SnapshotEngine.keyOf}). */
  readonly key: string;
  readonly createdAt: Date;
  /** Bytes of the volume; zero: not known. */
  readonly sizeBytes: number;
}

/** A snapshot that may fit a question. */
export interface Listed {
  /** Its {@link SnapshotEngine.keyOf}, as far as its volume and name can be told. */
  readonly key: string;
  /** Distinguishes it from the others of its engine. */
  readonly inner: string;
  /** Undefined when it is gone by now, or cannot be read. */
  load(): Promise<Snapshot | undefined>;
}

/** Errors that every operation can have: FAILED_PRECONDITION for settings or programs of the host, UNAVAILABLE for a repository that cannot be reached. */
export interface SnapshotEngine {
  readonly name: SnapshotDriver;
  /** Whether a copy that is broken off can leave something that looks like a whole one. */
  readonly leavesHalf: boolean;
  /** Its name before it has an id. */
  keyOf(volumeId: string, name: string): string;
  /** The id for a key, or for what this engine itself calls the snapshot. */
  idOf(inner: string): string;
  /** The whole snapshot that such a request made before. ALREADY_EXISTS when the name belongs to a snapshot of another volume or kind. */
  find(call: Call, spec: SnapshotSpec, key: string): Promise<Snapshot | undefined>;
  /** Copies the volume. NOT_FOUND when there is none. */
  take(call: Call, task: SnapshotTask, progress: CopyProgress): Promise<Snapshot>;
  get(call: Call, inner: string): Promise<Snapshot | undefined>;
  /** `volumeId`: only those that can be of this volume are wanted. */
  list(call: Call, volumeId: string | undefined): Promise<readonly Listed[]>;
  /** Where a volume can be filled from; undefined when there is no such snapshot. */
  source(call: Call, inner: string): Promise<Source | undefined>;
  /** Success when there is none. */
  delete(call: CallContext, inner: string): Promise<void>;
  /** Removes what was taken under a task's name, whole or not. */
  discard(call: Call, task: Pick<SnapshotTask, 'spec' | 'key'>): Promise<void>;
  /** Ends what it keeps open. */
  close(): Promise<void>;
}
