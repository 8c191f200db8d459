import type { HostFile, Inspection } from './inspection.ts';

/** A machine's id is made when it first starts, so what is older by more than this came with its image. In milliseconds. */
const toleranceMs = 3_600_000;

/** Says that a file is as old as the image that this machine was made from, so that its clones have it too. Undefined: it is not. */
export async function imageAge({ files }: Pick<Inspection, 'files'>, file: HostFile): Promise<string | undefined> {
  const root = file.path.replace(/\/etc\/.*$/, '');
  const machine = await files.look(`${root}/etc/machine-id`).catch(() => undefined);
  if (machine?.kind !== 'file' || file.modified === 0) return undefined;
  if (machine.modified - file.modified < toleranceMs) return undefined;
  return 'is older than this machine’s id, as if it came with the image: machines made from that image have the same';
}
