/** Copies of whole volumes as they are counted: how many run or wait, how much they have copied, how they ended. */

/** Which copies are counted together. */
export interface CopyKind {
  /** Empty when the driver serves directly. */
  readonly connection: string;
  /** What copies: `filecopy`, `restic`, `kopia`. */
  readonly engine: string;
}

export interface CopyMeter {
  /** `by`: 1 when one has come into this state, -1 when it has left it. */
  copiesChanged(kind: CopyKind, state: 'waiting' | 'running', by: 1 | -1): void;
  bytesCopied(kind: CopyKind, bytes: number): void;
  copyEnded(kind: CopyKind, outcome: 'ok' | 'failed' | 'cancelled'): void;
}

export const silentCopyMeter: CopyMeter = {
  copiesChanged: () => {},
  bytesCopied: () => {},
  copyEnded: () => {},
};
