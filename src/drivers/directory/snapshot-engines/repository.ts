/** A program that keeps snapshots in a repository of its own format. */
import type { CopyProgress } from '../copy-progress.ts';
import type { Call } from '../directory.ts';
import type { RepositoryName } from '../snapshot-id.ts';
import type { FillTarget } from '../source.ts';
import type { SnapshotTask } from './engine.ts';

/** A snapshot in the repository that is one of a volume. */
export interface Stored {
  /** The repository's id of it. */
  readonly inner: string;
  readonly host: string;
  /** The folder it was made of, as the host's programs saw it. */
  readonly path: string;
  readonly volumeId: string;
  /** Empty: democratic-csi did not come to name it. */
  readonly name: string;
  readonly instanceId?: string | undefined;
  readonly createdAt: Date;
  /** Bytes; zero: not known yet. */
  readonly sizeBytes: number;
}

export interface Repository {
  readonly name: RepositoryName;
  /** All of this name, oldest first, whoever made them. */
  named(call: Call, name: string): Promise<readonly Stored[]>;
  /** All snapshots of volumes. None when there is no repository yet. */
  list(call: Call): Promise<readonly Stored[]>;
  get(call: Call, inner: string): Promise<Stored | undefined>;
  /** The same with its size. */
  measured(call: Call, stored: Stored): Promise<Stored>;
  /** Copies the folder `path`. What it may leave when it fails is removed by the next try. */
  create(call: Call, task: SnapshotTask, path: string, progress: CopyProgress): Promise<Stored>;
  /** Fills the folder, wholly or with an error. NOT_FOUND when the snapshot is gone. */
  restore(call: Call, stored: Stored, where: FillTarget): Promise<void>;
  /** Success when it is gone. */
  delete(call: Call, stored: Stored): Promise<void>;
  close(): Promise<void>;
}
