/** The door for Docker, which is loaded when Docker knocks, or when it left something to do the last time. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Driver } from '../core/driver.ts';
import { asCallError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { DockerFrontend } from '../frontends/docker/frontend.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { DockerDoorSettings } from './docker-settings.ts';
import type { RequireSeen } from './docker-sight.ts';

export interface DockerDoor {
  /** Takes over a connection that speaks HTTP/1.1. */
  accept(socket: Duplex): void;
  /** Takes up what was left undone by an earlier run. Never rejects. */
  begin(): Promise<void>;
  /** As {@link DockerFrontend.stop}. */
  stop(limitMs: number): Promise<void>;
}

export interface DockerDoorOptions {
  readonly settings: DockerDoorSettings;
  readonly pipeline: Pipeline;
  readonly log: Logger;
  readonly requireSeen: RequireSeen;
}

export function openDockerDoor(driver: Driver, { settings, ...options }: DockerDoorOptions): DockerDoor {
  let loading: Promise<DockerFrontend> | undefined;
  let stopped = false;

  const report = (error: unknown) =>
    options.log.error('Docker cannot be served', { error: asCallError(error).message });

  function load(): Promise<DockerFrontend> {
    loading ??= import('../frontends/docker/frontend.ts').then(({ createDockerFrontend }) =>
      createDockerFrontend(driver, { ...settings, ...options }),
    );
    return loading;
  }

  return {
    accept(socket) {
      const giveBack = holdBack(socket);
      load().then(
        (frontend) => {
          if (stopped || socket.destroyed) socket.destroy();
          else frontend.accept(giveBack());
        },
        (error: unknown) => {
          report(error);
          socket.destroy();
        },
      );
    },
    async begin() {
      const isUsed = await access(join(settings.stateFolder, 'mounts')).then(
        () => true,
        () => false,
      );
      if (isUsed && !stopped) await load().catch(report);
    },
    async stop(limitMs) {
      stopped = true;
      await (await loading?.catch(() => undefined))?.stop(limitMs);
    },
  };
}

/** For a process that is only one half of what Docker needs. */
export const noDockerDoor: DockerDoor = {
  accept: (socket) => void socket.destroy(),
  begin: async () => {},
  stop: async () => {},
};

/** Keeps what arrives meanwhile; the function that it gives puts it back into the socket. */
function holdBack(socket: Duplex): () => Duplex {
  const chunks: Buffer[] = [];
  const keep = (chunk: Buffer) => void chunks.push(chunk);
  const gone = () => void socket.destroy();
  socket.on('data', keep).once('end', gone);
  return () => {
    socket.off('data', keep).off('end', gone).pause();
    if (chunks.length > 0) socket.unshift(Buffer.concat(chunks));
    return socket;
  };
}
