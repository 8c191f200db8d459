/** What is done about mounts that Docker does not see. */
import type { Logger } from '../core/logger.ts';
import { requireSeenByDocker } from '../node/seen-by-docker.ts';
import type { DockerDoorSettings } from './docker-settings.ts';

export type RequireSeen = (path: string) => Promise<void>;

/** Milliseconds of life before the process ends for it: a new one shall not end at once, and dockerd be done with what made it so. */
const leastAgeMs = 5000;

export interface SightOptions {
  readonly check?: RequireSeen;
  readonly ageMs?: () => number;
  readonly end?: () => void;
}

/**
 * Rejects for a mount that Docker does not see, as {@link requireSeenByDocker}. A managed plugin ends, too, in good order: dockerd, which unmounts its
 * folder now and then when it has been started anew, mounts that again as it starts the plugin again.
 */
export function dockerSight(
  settings: Pick<DockerDoorSettings, 'allowUnseenMounts' | 'restartUnseen'>,
  log: Logger,
  {
    check = requireSeenByDocker,
    ageMs = () => performance.now(),
    end = () => void process.kill(process.pid, 'SIGTERM'),
  }: SightOptions = {},
): RequireSeen {
  if (settings.allowUnseenMounts) return async () => {};
  if (!settings.restartUnseen) return check;
  let ending = false;
  return async (path) => {
    try {
      await check(path);
    } catch (error) {
      if (!ending && ageMs() > leastAgeMs) {
        ending = true;
        log.error('Docker does not see what is mounted here; dockerd is to start this plugin anew', { path });
        end();
      }
      throw error;
    }
  };
}
