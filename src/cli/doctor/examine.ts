/** All checks, each within its own time. */
import { bounded, whyOf } from './bounded.ts';
import { checkConfiguration } from './configuration.ts';
import { checkConnections } from './connections.ts';
import { checkDocker } from './docker-engine.ts';
import { about, type Finding, type Subject, subjects } from './finding.ts';
import type { Inspection } from './inspection.ts';
import { checkKernel } from './kernel.ts';
import { checkLimits } from './limits.ts';
import { checkMounts } from './mounts.ts';
import { checkPrivileges } from './privileges.ts';
import { checkPrograms } from './programs.ts';
import { withoutSecrets } from './secrets.ts';
import { checkSockets } from './sockets.ts';

/** Milliseconds for the checks of one subject. */
const limitMs = 9000;

type Check = (inspection: Inspection) => Promise<readonly Finding[]>;

/** The checks by subject. Identity has to make the driver, which is the caller's to say how. */
export function checksWith(identity: Check): Readonly<Record<Subject, Check>> {
  return {
    configuration: checkConfiguration,
    connections: checkConnections,
    sockets: checkSockets,
    privileges: checkPrivileges,
    programs: checkPrograms,
    kernel: (inspection) => checkKernel(inspection),
    identity,
    mounts: checkMounts,
    docker: checkDocker,
    limits: checkLimits,
  };
}

/** Runs all checks at once. What one of them throws, or that it does not end, is a finding of its own. Never rejects; shows no secret. */
export async function examine(
  inspection: Inspection,
  checks: Readonly<Record<Subject, Check>>,
): Promise<readonly Finding[]> {
  const found = await Promise.all(
    subjects.map(async (subject) => {
      try {
        return await bounded(limitMs, 'this check', checks[subject](inspection));
      } catch (error) {
        return [about(subject)('warning', 'not all checked', whyOf(error))];
      }
    }),
  );
  return withoutSecrets(found.flat(), inspection.configured.secrets);
}
