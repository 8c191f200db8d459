/** Signals all processes of the group that `pid` leads. */
export function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: the group is gone, which is what was wanted.
  }
}
