/** Owner and mode of new volumes: `dirPermissionsMode`, `dirPermissionsUser`, `dirPermissionsGroup`. */
import type { CommandOutput } from '../../backends/exec/run.ts';
import { CallError, errnoOf } from '../../core/errors.ts';
import type { Call, Directory } from './directory.ts';

const lookupLimitMs = 10_000;

/** Gives a volume's folder the configured mode, user and group. What is not configured stays; the mode is `otherwise` then, if given. */
export async function applyPermissions(
  directory: Directory,
  call: Call,
  path: string,
  otherwise: number | undefined,
): Promise<void> {
  const { files, options } = directory;
  const user = await numberOf(directory, call, 'passwd', options.dirPermissionsUser);
  const group = await numberOf(directory, call, 'group', options.dirPermissionsGroup);
  // A change of owner clears the set-id bits, so the mode comes last.
  if (user !== undefined || group !== undefined) {
    await files.setOwner(path, user ?? -1, group ?? -1).catch((error: unknown) => {
      throw explained(error, directory.layout.base);
    });
  }
  const mode = options.dirPermissionsMode ?? otherwise;
  if (mode !== undefined) await files.setMode(path, mode);
}

function explained(error: unknown, base: string): unknown {
  if (errnoOf(error) !== 'EPERM' && errnoOf(error) !== 'EACCES') return error;
  return new CallError(
    'FAILED_PRECONDITION',
    `the file system at ${base} does not let this machine give folders to others (an NFS server with root_squash does not): ` +
      'allow it there, or remove dirPermissionsUser and dirPermissionsGroup',
    { cause: error },
  );
}

/** A user's or group's number: itself, or as the host's databases have it. */
async function numberOf(
  { run }: Directory,
  call: Call,
  database: 'passwd' | 'group',
  name: string | undefined,
): Promise<number | undefined> {
  if (name === undefined || name === '') return undefined;
  if (/^\d+$/.test(name)) return Number(name);
  const output = await run(call, {
    program: 'getent',
    args: [database, name],
    timeoutMs: lookupLimitMs,
    accept: [0, 2],
  });
  const found = idIn(output);
  if (found === undefined) {
    const what = database === 'passwd' ? 'user' : 'group';
    throw new CallError('FAILED_PRECONDITION', `the host knows no ${what} ${JSON.stringify(name)}`);
  }
  return found;
}

/** The third field of `name:x:1000:…`. */
function idIn(output: CommandOutput): number | undefined {
  const field = output.stdout.split('\n')[0]?.split(':')[2];
  return field !== undefined && /^\d+$/.test(field) ? Number(field) : undefined;
}
