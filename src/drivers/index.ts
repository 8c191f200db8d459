/** The table of all drivers: what `driver:` in a configuration file can be. */
import type { Driver } from '../core/driver.ts';
import { localHostpath } from './local-hostpath/type.ts';
import type { DriverEnvironment, DriverType } from './type.ts';

export const driverTypes: readonly DriverType[] = [localHostpath];

/** The row of this name, or undefined. */
export function driverType(name: string): DriverType | undefined {
  return driverTypes.find((type) => type.name === name);
}

/** Makes a driver from options that its schema has validated. Throws CallError for settings that cannot work. */
export async function makeDriver<Options>(
  type: DriverType<Options>,
  options: Options,
  environment: DriverEnvironment,
): Promise<Driver> {
  await type.prepare?.(options);
  return type.create(options, environment);
}
