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
  /** The first two pages of 100 of a list. */
  listTwoPages?(): Promise<unknown>;
  close(): Promise<void>;
}

/** Bytes of a volume. */
export const volumeBytes = 64 * 2 ** 20;

export const shareOptions = 'rw,no_subtree_check';
