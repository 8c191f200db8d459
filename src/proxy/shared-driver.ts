/**
 * A driver that is replaced while calls run on it: the old one is closed when the last of them has ended.
 *
 * An operation counts as a use for as long as it runs, and it may run longer than the caller waits (core/operations.ts).
 */
import type { Driver } from '../core/driver.ts';
import { asCallError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { within } from '../core/within.ts';

export interface SharedDriver {
  /** The driver, whose running operations are uses. */
  readonly driver: Driver;
  /** Keeps it open until the returned function is called. Undefined when it is closed already: get the present one. */
  hold(): (() => void) | undefined;
  users(): number;
  /** Closes it after its last use, which may be now. */
  retire(): void;
  /** Closes it now, whoever uses it, and resolves when that is done or has taken too long. Never rejects. */
  close(): Promise<void>;
}

export interface SharedDriverOptions {
  readonly log: Logger;
  /** Milliseconds that closing may take before nobody waits for it any more. */
  readonly closeLimitMs: number;
  /** The last use of a driver that is not retired has ended. */
  readonly onIdle: () => void;
  /** It was closed, or given up. */
  readonly onClosed: () => void;
}

export function shareDriver(driver: Driver, options: SharedDriverOptions): SharedDriver {
  let users = 0;
  let retired = false;
  let closing: Promise<void> | undefined;

  function begin(): () => void {
    users++;
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      users--;
      if (users > 0 || closing) return;
      if (goesOn()) return;
      if (retired) void close();
      else options.onIdle();
    };
  }

  /** Work in the background is a use, too, from the moment that nobody else uses the driver. */
  function goesOn(): boolean {
    if (!driver.idle || (driver.background?.() ?? []).length === 0) return false;
    const end = begin();
    driver.idle().then(end, end);
    return true;
  }

  function close(): Promise<void> {
    closing ??= closeWithin(driver, options).finally(options.onClosed);
    return closing;
  }

  return {
    driver: counted(driver, begin),
    hold: () => (closing ? undefined : begin()),
    users: () => users,
    retire() {
      retired = true;
      if (users === 0) void close();
    },
    close,
  };
}

/** Operations that tell a name beforehand and do no work. */
const notCounted: ReadonlySet<string> = new Set(['idFor']);

function counted(driver: Driver, begin: () => () => void): Driver {
  const count = (operation: (...args: unknown[]) => unknown) =>
    async function counting(...args: unknown[]): Promise<unknown> {
      const end = begin();
      try {
        return await operation(...args);
      } finally {
        end();
      }
    };
  const group = <G extends object>(operations: G): G =>
    Object.fromEntries(
      Object.entries(operations).map(([name, member]) => [
        name,
        typeof member === 'function' && !notCounted.has(name) ? count(member) : member,
      ]),
    ) as G;
  const { volumes, snapshots, expansion, publication, node, capacity } = driver;
  return {
    ...driver,
    ...(volumes && { volumes: group(volumes) }),
    ...(snapshots && { snapshots: group(snapshots) }),
    ...(expansion && { expansion: group(expansion) }),
    ...(publication && { publication: group(publication) }),
    ...(node && { node: group(node) }),
    ...(capacity && group({ capacity })),
  };
}

async function closeWithin(driver: Driver, { log, closeLimitMs }: SharedDriverOptions): Promise<void> {
  try {
    const closed = Promise.resolve()
      .then(() => driver.close())
      .then(() => true);
    if (await within(closeLimitMs, closed, false)) return;
    log.warn('a driver did not close in time and was left behind', { driver: driver.name });
  } catch (error) {
    log.warn('a driver failed to close', { driver: driver.name, error: asCallError(error).message });
  }
}
