/** Errors of one connection among many say which. */
import { asCallError, CallError } from '../core/errors.ts';

/** The error with the connection's name in front, once, and the same code. */
export function namingConnection(name: string, error: unknown): CallError {
  const known = asCallError(error);
  const prefix = `connection "${name}": `;
  if (known.message.startsWith(prefix)) return known;
  const named = new CallError(known.code, prefix + known.message, { cause: error });
  // For the log of unexpected failures: where it happened, not where it was named.
  if (error instanceof Error && error.stack !== undefined) named.stack = error.stack;
  return named;
}

/** An operation that the connection's driver does not have. */
export function cannot(driver: string, operation: string): CallError {
  return new CallError('UNIMPLEMENTED', `its driver ${driver} has no ${operation}`);
}

/** The operation, or UNIMPLEMENTED when the driver does not have it. */
export function required<T>(operation: T | undefined, driver: { readonly name: string }, title: string): T {
  if (operation === undefined) throw cannot(driver.name, title);
  return operation;
}
