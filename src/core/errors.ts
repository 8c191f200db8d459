/**
 * The one error type that crosses module borders.
 *
 * Everything a call can fail with ends as a {@link CallError}: a gRPC status code (CSI spec, "Error Scheme") and one line for the person who
 * reads it: what failed, where, what the tool said, what to do. Never a stack, never a secret.
 */

import { constants } from 'node:os';

/** gRPC status codes by name, https://grpc.io/docs/guides/status-codes/. */
export const statusCodes = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type StatusCode = keyof typeof statusCodes;

/** A failure with the code the CSI spec asks for. `message` is shown to the caller as it is. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly code: StatusCode;

  constructor(code: StatusCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The code of a Node.js system error (`ENOENT`, `EBUSY` …), or undefined for any other error. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code.replace(unnamed, nameOf) : undefined;
}

/** What Node.js makes of numbers that it has no name for: of ESTALE and EDQUOT, among others. */
const unnamed = /Unknown system error -(\d+)/g;

function nameOf(text: string, number: string): string {
  return Object.entries(constants.errno).find(([, value]) => value === Number(number))?.[0] ?? text;
}

/** System errors that mean something better than INTERNAL to a caller. */
const codesByErrno: Readonly<Record<string, StatusCode>> = {
  ENOSPC: 'RESOURCE_EXHAUSTED',
  EDQUOT: 'RESOURCE_EXHAUSTED',
  EMFILE: 'RESOURCE_EXHAUSTED',
  ENFILE: 'RESOURCE_EXHAUSTED',
  ENOMEM: 'RESOURCE_EXHAUSTED',
  EACCES: 'PERMISSION_DENIED',
  EPERM: 'PERMISSION_DENIED',
  EROFS: 'FAILED_PRECONDITION',
  EBUSY: 'FAILED_PRECONDITION',
  ENAMETOOLONG: 'INVALID_ARGUMENT',
  ECONNREFUSED: 'UNAVAILABLE',
  ECONNRESET: 'UNAVAILABLE',
  EHOSTDOWN: 'UNAVAILABLE',
  EHOSTUNREACH: 'UNAVAILABLE',
  ENETUNREACH: 'UNAVAILABLE',
  ENOTCONN: 'UNAVAILABLE',
  ETIMEDOUT: 'UNAVAILABLE',
  EIO: 'UNAVAILABLE',
  ESTALE: 'UNAVAILABLE',
};

/** Any thrown thing as a CallError: itself, a system error by its errno, everything else INTERNAL. Always one line, never a stack. */
export function asCallError(error: unknown): CallError {
  if (error instanceof CallError) return error;
  const message = oneLine(error instanceof Error ? error.message.replace(unnamed, nameOf) : String(error));
  const errno = errnoOf(error);
  const code = (errno !== undefined && codesByErrno[errno]) || 'INTERNAL';
  return new CallError(code, message, { cause: error });
}

/** Text from a tool or library, folded to one line of at most `limit` characters. */
export function oneLine(text: string, limit = 400): string {
  const folded = text.replace(/\s+/g, ' ').trim();
  return folded.length > limit ? `${folded.slice(0, limit - 1)}…` : folded;
}
