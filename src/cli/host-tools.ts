import { readFile } from 'node:fs/promises';
import { createHostPrograms, type HostPrograms } from '../backends/exec/host-programs.ts';
import type { HostSettings } from '../backends/exec/host-settings.ts';
import { parseMountTable, readMountTable } from '../node/mount-table.ts';
import type { Shell } from './shell.ts';

/** The programs of the host as this process reaches them. Nothing is looked at before the first program is asked for. */
export function hostTools(settings: HostSettings, env: Shell['env']): HostPrograms {
  return createHostPrograms({
    settings,
    path: env.PATH,
    readMounts: async (pid) =>
      pid === undefined ? readMountTable() : parseMountTable(await readFile(`/proc/${pid}/mountinfo`, 'utf8')),
  });
}
