/** `ctl nomad-volumes`: the volumes of a job with `per_alloc`, which wants one registered volume for each allocation before it starts. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { shortenId } from '../../drivers/common/shorten-id.ts';
import { encodeName } from '../../drivers/common/volume-id.ts';
import { UsageError } from '../usage-error.ts';
import { parseCount } from './arguments.ts';
import { createVolume } from './create-volume.ts';
import { type NomadOptions, requireNomadCan, withNomad } from './nomad-options.ts';
import { type NamedVolume, nomadVolume, pluginIdOf, showNomadVolumes } from './nomad-show.ts';
import { nomadPayload, nomadVolumeFile } from './nomad-volume.ts';
import type { Run, Session } from './session.ts';
import { type CreateOptions, withCreateOptions } from './volume-options.ts';

interface SetOptions extends CreateOptions, NomadOptions {
  readonly count: number;
  readonly dryRun?: boolean;
  readonly out?: string;
}

const help = `
Repeated, it finds the volumes it made before and makes what is missing: after a failure, or with a larger --count.
With --dry-run nothing is made, and the files are for \`nomad volume create\`, which has Nomad make the volumes.`;

export function defineNomadVolumes(ctl: Command, run: Run): void {
  withNomad(withCreateOptions(ctl.command('nomad-volumes').argument('<name>', 'the source in the job’s volume block')))
    .description('Make the volumes name[0], name[1] … of a Nomad job with per_alloc, and print their volume files')
    .requiredOption('--count <count>', 'how many: the group’s count', parseCount)
    .option('--dry-run', 'make no volumes; print files with which Nomad makes them')
    .option('--out <directory>', 'write one file a volume there, made when it is missing')
    .addHelpText('after', help)
    .action((name: string, options: SetOptions, command: Command) =>
      run(command, (session) => nomadVolumes(session, name, options)),
    );
}

/** A slip of the hand must not fill the storage. */
const most = 1000;

async function nomadVolumes(session: Session, name: string, options: SetOptions): Promise<void> {
  requireNomadCan(options);
  if (options.count > most) throw new UsageError(`--count ${options.count} is more than ${most}`);
  if (options.out === undefined)
    return await showNomadVolumes(session, await volumesOf(session, name, options), options);

  // First what can fail without having done anything.
  const pluginId = await pluginIdOf(session, options);
  await mkdir(options.out, { recursive: true });
  const files: { id: string; file: string }[] = [];
  for (const [index, volume] of (await volumesOf(session, name, options)).entries()) {
    const file = join(options.out, `${fileNameOf(name)}-${index}.${session.json ? 'json' : 'volume.hcl'}`);
    const nomad = nomadVolume(volume, options, pluginId);
    await writeFile(
      file,
      session.json ? `${JSON.stringify(nomadPayload([nomad]), null, 2)}\n` : nomadVolumeFile(nomad),
    );
    files.push({ id: volume.name, file });
  }
  const command = options.dryRun ? 'create' : 'register';
  session.show({ files }, files.map(({ id, file }) => `${id}: nomad volume ${command} ${file}\n`).join(''));
}

/** One after another: a back end that is made to do all at once may do none in time. */
async function volumesOf(session: Session, name: string, options: SetOptions): Promise<readonly NamedVolume[]> {
  const names = Array.from({ length: options.count }, (_one, index) => `${name}[${index}]`);
  if (options.dryRun) return names.map((one) => ({ name: one }));
  const volumes: NamedVolume[] = [];
  for (const one of names) volumes.push({ name: one, made: await createVolume(session, one, options) });
  return volumes;
}

/** A file name of any name, with room for an ending. */
function fileNameOf(name: string): string {
  return shortenId(encodeName(name), 200);
}
