/** Where a server without a configuration keeps its own, and where `ctl` looks for it. */
import { join } from 'node:path';
import type { Shell } from './shell.ts';

export interface Account {
  readonly isRoot: boolean;
  readonly home: string;
}

/** The socket of a server whose configuration lies in {@link systemConfigPath} and names no endpoint. */
export const systemSocketPath = '/run/switchboard/csi.sock';

/** The configuration used when no flag and no variable names one, and it exists. */
export const systemConfigPath = '/etc/switchboard/switchboard.yaml';

/** `SWITCHBOARD_STATE_DIR`, or the usual place for the account. */
export function stateDirectory(env: Shell['env'], account: Account): string {
  if (env.SWITCHBOARD_STATE_DIR) return env.SWITCHBOARD_STATE_DIR;
  return account.isRoot ? '/var/lib/switchboard' : join(account.home, '.local/share/switchboard');
}

export function stateSocketPath(env: Shell['env'], account: Account): string {
  return join(stateDirectory(env, account), 'csi.sock');
}
