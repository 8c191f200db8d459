/** What a call or operation waits for at the moment, innermost last, for people who ask why it takes long. */
export interface Activity {
  /** The innermost thing waited for, or undefined. */
  current(): string | undefined;
  /** Runs `work` and names it meanwhile. */
  readonly waitingFor: <T>(what: string, work: () => Promise<T>) => Promise<T>;
}

export function createActivity(): Activity {
  const stack: string[] = [];
  return {
    current: () => stack.at(-1),
    async waitingFor(what, work) {
      stack.push(what);
      try {
        return await work();
      } finally {
        stack.splice(stack.lastIndexOf(what), 1);
      }
    },
  };
}
