/** The shape of a service's handlers: one function a method, in the generated message types. */
import type { CallContext } from '../../core/call.ts';
import type { Driver } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { Init } from '../../generated/csi.js';
import type { RequestOf, ResponseOf, ServiceName, Services } from '../../generated/services.js';

/** Every method of a service, from decoded request to the fields of its response. */
export type Handlers<Name extends ServiceName> = {
  readonly [Method in keyof Services[Name]]: (
    call: CallContext,
    request: RequestOf<Services[Name][Method]>,
  ) => Promise<Init<ResponseOf<Services[Name][Method]>>>;
};

/** An optional operation of a driver, or UNIMPLEMENTED when it has none. */
export function needed<T>(operation: T | undefined, driver: Driver): T {
  if (operation === undefined) throw new CallError('UNIMPLEMENTED', `driver ${driver.name} does not do this`);
  return operation;
}
