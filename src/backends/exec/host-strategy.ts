/** How a program of the host is started: where its file is and what goes before it. */

export interface Invocation {
  /** A path, or a name to look for in the search path. */
  readonly file: string;
  readonly args: readonly string[];
  /** The name it is told to have been started by. Default: `file`. */
  readonly argv0?: string | undefined;
  /** Added to the child's environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** What comes before a program's own arguments, the program itself included. */
export interface Start {
  readonly argv: readonly string[];
  readonly argv0?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/**
 * Turns "this program of the host with these arguments" into what this process can start itself. What needs no looking around is answered at
 * once. Throws CallError, FAILED_PRECONDITION when the program is nowhere or cannot do its work where it is.
 */
export type HostStrategy = (program: string, args: readonly string[]) => Invocation | Promise<Invocation>;

/** The programs of the file system this process runs in: systemd units, raw_exec tasks, ordinary containers. */
export const directStrategy: HostStrategy = (program, args) => ({ file: program, args });

/** Puts paths of single programs in place of their names. */
export function withPaths(strategy: HostStrategy, paths: Readonly<Record<string, string>>): HostStrategy {
  return (program, args) => strategy(Object.hasOwn(paths, program) ? (paths[program] as string) : program, args);
}
