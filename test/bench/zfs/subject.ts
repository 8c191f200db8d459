/** Something that makes volumes on the storage host. */

export interface ZfsSubject {
  readonly name: string;
  /** Its process on this machine. */
  readonly pid: number;
  create(volume: string): Promise<unknown>;
  /** The same request again. */
  createAgain(volume: string): Promise<unknown>;
  remove(volume: string): Promise<unknown>;
  capacity(): Promise<unknown>;
  list(): Promise<unknown>;
  /** A list in pages of 100, to its end. */
  listInPages?(): Promise<unknown>;
  close(): Promise<void>;
}

/** Bytes of a volume. */
export const volumeBytes = 64 * 2 ** 20;

export const shareOptions = 'rw,no_subtree_check';
