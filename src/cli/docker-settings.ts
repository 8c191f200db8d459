/** What the Docker door was asked to be, from flags and environment. */
import { join, resolve } from 'node:path';
import type { DockerSettings } from '../frontends/docker/frontend.ts';
import type { SettingReader } from './setting-reader.ts';
import { UsageError } from './usage-error.ts';

export interface DockerDoorSettings extends DockerSettings {
  /** An endpoint that serves nothing but Docker. It is served on all others too. */
  readonly endpoint: string | undefined;
  /** Lets volumes be mounted where no dockerd sees them. */
  readonly allowUnseenMounts: boolean;
  /** Ends the process when no dockerd sees them, which starts it again. */
  readonly restartUnseen: boolean;
}

const dockerScopes = ['global', 'local'] as const;

export function dockerSettings(read: SettingReader, stateDirectory: string): DockerDoorSettings {
  const stateFolder = resolve(stateDirectory, 'docker');
  const socket = read.text('docker-socket');
  const scope = read.text('docker-scope');
  const chosen = dockerScopes.find((one) => one === scope);
  if (scope !== undefined && chosen === undefined) {
    throw new UsageError(`docker-scope: "${scope}" is not one of ${dockerScopes.join(', ')}`);
  }
  return {
    endpoint: socket === undefined || socket.startsWith('unix:') ? socket : `unix:${socket}`,
    stateFolder,
    mountRoot: resolve(read.text('docker-mount-root') ?? join(stateFolder, 'mnt')),
    defaults: read.pairs('docker-default'),
    scope: chosen,
    secretsFolder: read.text('docker-secrets-folder'),
    allowUnseenMounts: read.yes('docker-allow-unseen-mounts'),
    restartUnseen: read.yes('docker-restart-unseen'),
  };
}
