/** Carries the exit code out of commander's callbacks. */
export interface Outcome {
  code: number;
}
