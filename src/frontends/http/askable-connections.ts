import type { ObservedDriver } from './sources.ts';

/** The connections whose storage can be asked for its free space; a driver that serves directly is one without a name. */
export function askableConnections(driver: ObservedDriver): readonly string[] {
  if (!driver.connections) return driver.capacity ? [''] : [];
  // A file that was never good has nobody to ask.
  const askable = driver.connections().filter((one) => one.state !== 'broken' || one.driver !== undefined);
  return askable.map(({ name }) => name);
}
