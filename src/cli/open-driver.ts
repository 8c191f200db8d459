/** From a configuration to the one driver that the frontends know. */
import { advertisedFrom } from '../config/common.ts';
import { createOperations } from '../core/operations.ts';
import type { ObservedDriver } from '../frontends/http/sources.ts';
import { joining } from '../pipeline/joining.ts';
import { createProxy } from '../proxy/index.ts';
import { directEnvironment, type ProcessFacts, proxyEnvironment } from './environment.ts';
import type { DirectMain, MainConfig } from './main-config.ts';

/** Makes the driver; nothing is asked of any storage. Throws CallError for settings that cannot work. */
export async function openDriver(main: MainConfig, facts: ProcessFacts): Promise<ObservedDriver> {
  if (main.kind === 'direct') return openDirect(main, facts);
  const config = main.loaded.value;
  const mountGroup = advertisedFrom(config).node?.includes('VOLUME_MOUNT_GROUP') === true;
  return createProxy(config, proxyEnvironment(facts, mountGroup));
}

async function openDirect({ type, loaded }: DirectMain, facts: ProcessFacts): Promise<ObservedDriver> {
  await type.prepare?.(loaded.value as never);
  const operations = createOperations();
  const driver = joining(type.create(loaded.value as never, directEnvironment(facts)), operations);
  return {
    ...driver,
    operations: () => [...operations.active(), ...(driver.background?.() ?? [])],
    async close() {
      await operations.stop();
      await driver.close();
    },
  };
}
