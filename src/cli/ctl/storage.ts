/** The storage of one connection, without a server: for what no orchestrator can ask for. */
import { basename } from 'node:path';
import { createRunner } from '../../backends/exec/runner.ts';
import { type CallContext, detachedContext } from '../../core/call.ts';
import type { RepairOperations } from '../../core/driver.ts';
import { silentLogger } from '../../core/logger.ts';
import { directEnvironment } from '../environment.ts';
import { hostSettings } from '../host-options.ts';
import { hostTools } from '../host-tools.ts';
import { loadMainConfig } from '../main-config.ts';
import { settingsAsServed } from '../settings-as-served.ts';
import type { Shell } from '../shell.ts';
import { CommandError, UsageError } from '../usage-error.ts';

export interface Storage {
  readonly repair: RepairOperations;
  readonly call: CallContext;
  /** The id of a volume as orchestrators know it behind a proxy that has this file as a connection. */
  readonly handle: (volumeId: string) => string;
}

/** Opens what `file` describes: a connection's file, or a main file whose driver serves directly. Ctrl-C ends the call. */
export async function withStorage(
  file: string | undefined,
  shell: Shell,
  work: (storage: Storage) => Promise<void>,
): Promise<void> {
  const { env } = shell;
  const settings = await settingsAsServed(file === undefined ? {} : { config: file }, shell);
  const path = settings.configPath;
  if (path === undefined) throw new UsageError('which storage?', 'Name the connection’s file with --config.');
  const main = await loadMainConfig(path, env);
  if (main.kind === 'proxy') {
    throw new UsageError(`${path} is a proxy’s`, 'Name the file of one of its connections with --config.');
  }
  const host = hostSettings(settings.host ?? {}, main.host, env, () => {});
  const { strategy, placeOf } = hostTools(host, env);
  const run = createRunner({ env, strategy, placeOf, searchPath: host.searchPath });
  const { csiName, nodeName } = settings;
  const environment = directEnvironment({ csiName, nodeName, env, run, log: silentLogger });
  await main.type.prepare?.(main.loaded.value as never);
  const handle = (id: string) => `v:${basename(path).replace(/\.ya?ml$/, '')}/${id}`;
  const maxIdBytes = environment.maxIdBytes - Buffer.byteLength(handle(''));
  const driver = main.type.create(main.loaded.value as never, { ...environment, maxIdBytes });
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  try {
    if (!driver.repair) throw new CommandError(`driver ${driver.name} has nothing that could be adopted or repaired`);
    await work({ repair: driver.repair, call: detachedContext(silentLogger, interrupted.signal), handle });
  } finally {
    process.removeListener('SIGINT', interrupt);
    await driver.close();
  }
}
