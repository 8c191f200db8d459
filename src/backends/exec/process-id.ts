import { readdir, readFile } from 'node:fs/promises';

/** The id of the oldest process of a name (as `comm` has it: its first 15 bytes); undefined when none is to be seen. */
export async function oldestProcess(name: string): Promise<number | undefined> {
  const ids = (await readdir('/proc').catch(() => [])).filter((entry) => /^\d+$/.test(entry));
  let oldest: { readonly pid: number; readonly started: number } | undefined;
  for (const id of ids) {
    const stat = await readFile(`/proc/${id}/stat`, 'utf8').catch(() => '');
    // The name stands in parentheses and may have some of its own.
    const end = stat.lastIndexOf(')');
    if (stat.slice(stat.indexOf('(') + 1, end) !== name.slice(0, 15)) continue;
    const [state, ...fields] = stat.slice(end + 2).split(' ');
    const started = Number(fields[18]);
    if (state !== 'Z' && (!oldest || started < oldest.started)) oldest = { pid: Number(id), started };
  }
  return oldest?.pid;
}
