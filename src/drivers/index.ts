/** The table of all drivers: what `driver:` in a configuration file can be. */
import { localHostpath } from './local-hostpath/type.ts';
import type { DriverType } from './type.ts';

export const driverTypes: readonly DriverType[] = [localHostpath];

/** The row of this name, or undefined. */
export function driverType(name: string): DriverType | undefined {
  return driverTypes.find((type) => type.name === name);
}
