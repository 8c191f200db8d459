/** A program that is being started or runs, leading a process group of its own: as much of node:child_process as its owner needs. */

export interface Child {
  /** Undefined until it has been started, and when it could not be. */
  readonly pid?: number | undefined;
  readonly exitCode: number | null;
  readonly signalCode: NodeJS.Signals | null;
  readonly stdin?: { destroy(): void } | null;
  readonly stdout: ChildOutput | null;
  readonly stderr: ChildOutput | null;
  on(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'spawn', listener: () => void): unknown;
  once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown;
  /** It has ended and its output, too. */
  once(event: 'close', listener: () => void): unknown;
  /** The process need not stay because of it. */
  unref(): void;
}

export interface ChildOutput {
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Nobody wants more of it. */
  destroy(): void;
}

/** How a program is started. */
export interface ChildOptions {
  /** A path, or a name to look for in the `PATH` of `env`. */
  readonly file: string;
  /** Without the zeroth. */
  readonly args: readonly string[];
  readonly argv0?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a program without input, in the root directory. Undefined: this way is not open now, or not for this one. */
export type StartChild = (options: ChildOptions) => Child | undefined;
