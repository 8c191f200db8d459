/** A driver made from its own example: it does no work, it only tells what it could do. */
import { parse } from 'valibot';
import type { Driver } from '../core/driver.ts';
import { silentLogger } from '../core/logger.ts';
import type { DriverEnvironment, DriverType } from '../drivers/type.ts';

/** An environment in which drivers can be made, but run nothing. */
export const idleEnvironment: DriverEnvironment = {
  csiName: 'org.switchboard.csi',
  nodeName: 'node',
  nodeId: 'node',
  nodeTopology: {},
  maxIdBytes: 128,
  run: () => Promise.reject(new Error('this driver was made to be described, not to be used')),
  log: silentLogger,
};

export async function driverFromExample(type: DriverType): Promise<Driver> {
  const options = parse(type.schema, type.example) as never;
  await type.prepare?.(options);
  return type.create(options, idleEnvironment);
}
