/** Exit codes of every command (`sysexits.h` for the last). */
export const exitCodes = {
  done: 0,
  /** The thing asked for failed, or the answer is no. */
  failed: 1,
  /** The command line itself is wrong. */
  usage: 2,
  /** A defect of this program. */
  internal: 70,
  /** Ended by Ctrl-C. */
  interrupted: 130,
} as const;
