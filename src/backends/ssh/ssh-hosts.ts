/** All hosts that are reached over SSH. */
import { createHash } from 'node:crypto';
import type { Shell } from '../shell/shell.ts';
import { createChannels } from './channels.ts';
import { createSshConnection } from './connection.ts';
import { runScript } from './run-script.ts';
import type { SshSettings } from './settings.ts';
import { createWorkers } from './workers.ts';

/** What was asked of a host, for metrics. */
export interface SshRequest {
  readonly title: string;
  /** `ok`, or the code of the error. */
  readonly outcome: string;
  readonly milliseconds: number;
}

export interface SshHosts {
  /** A shell on a host. No input or output happens before the first script. Shells with equal settings share one connection, which ends with the last. */
  open(settings: SshSettings): Shell;
}

interface Shared {
  readonly shell: Shell;
  users: number;
}

export function createSshHosts(onRequest: (request: SshRequest) => void = () => {}): SshHosts {
  const shared = new Map<string, Shared>();
  return {
    open(settings) {
      const key = createHash('sha256').update(JSON.stringify(settings)).digest('hex');
      const entry = shared.get(key) ?? { shell: createSshShell(settings, onRequest), users: 0 };
      shared.set(key, entry);
      entry.users++;
      let open = true;
      return {
        ...entry.shell,
        async close() {
          if (!open) return;
          open = false;
          if (--entry.users > 0) return;
          shared.delete(key);
          await entry.shell.close();
        },
      };
    },
  };
}

function createSshShell(settings: SshSettings, onRequest: (request: SshRequest) => void): Shell {
  const { host } = settings;
  const connection = createSshConnection(settings);
  const channels = createChannels(settings.channels);
  const workers = createWorkers();
  return {
    host,
    async run(call, script) {
      const started = performance.now();
      let outcome = 'ok';
      try {
        return await call.waitingFor(`\`${script.title}\` on ${host}`, () =>
          channels.use(call, async () => await runScript(call, await connection.client(call), workers, host, script)),
        );
      } catch (error) {
        outcome = error instanceof Error && 'code' in error ? String(error.code).toLowerCase() : 'internal';
        throw error;
      } finally {
        onRequest({ title: script.title, outcome, milliseconds: Math.round(performance.now() - started) });
      }
    },
    async close() {
      workers.close();
      connection.close();
    },
  };
}
