/**
 * What this process and the child that works on a share for it (files-child.ts, files-worker.ts) say to each other: one JSON value a line, on
 * the child's standard input and output.
 */
import type { StringDecoder } from 'node:string_decoder';
import { CallError, type StatusCode, statusCodes } from '../../core/errors.ts';
import type { Files } from './files.ts';

/** The hidden command by which the program becomes that child. */
export const filesWorkerCommand = 'files-worker';

/** `hold` keeps a folder open, so that what it is on cannot be unmounted meanwhile. */
export type FilesWork = keyof Files | 'hold';

export type FilesRequest =
  | { readonly id: number; readonly do: FilesWork; readonly with: readonly unknown[] }
  /** Ends work that can be ended. */
  | { readonly stop: number };

export interface FilesReply {
  readonly id: number;
  /** The result. Dates are milliseconds since the epoch. */
  readonly is?: unknown;
  readonly failed?: WireError;
  /** There is no result yet, but work is being done. */
  readonly goesOn?: true;
}

export interface WireError {
  /** A status of {@link CallError}, or undefined for any other error. */
  readonly status?: StatusCode;
  /** ENOENT … */
  readonly errno?: string;
  readonly message: string;
  readonly cause?: WireError;
}

export function toWire(error: unknown): WireError {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message } = error;
  if (error instanceof CallError) {
    const cause = error.cause === undefined ? {} : { cause: toWire(error.cause) };
    return { status: error.code, message, ...cause };
  }
  return 'code' in error && typeof error.code === 'string' ? { errno: error.code, message } : { message };
}

export function fromWire({ status, errno, message, cause }: WireError): Error {
  if (status !== undefined && Object.hasOwn(statusCodes, status)) {
    return new CallError(status, message, cause && { cause: fromWire(cause) });
  }
  return Object.assign(new Error(message), errno === undefined ? {} : { code: errno });
}

/** Makes a function that takes pieces of text as they come and gives each whole line to `take`. */
export function lineReader(decoder: StringDecoder, take: (line: string) => void): (chunk: Buffer) => void {
  let rest: string[] = [];
  return (chunk) => {
    const lines = decoder.write(chunk).split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      take(rest.join('') + line);
      rest = [];
    }
    rest.push(last);
  };
}
