/** Carries the exit code out of commander's callbacks. */
export interface Outcome {
  code: number;
  /** Called before a failure is reported. Resolves when the process may end. */
  failed?: () => Promise<void>;
}
