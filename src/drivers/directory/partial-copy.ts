/**
 * Copies that were broken off and can be gone on with. The folder of such a work has a note of what is copied, so that the same request later, by
 * this process or the next, takes the folder over with what is in it.
 *
 * Only after a restart of the process, not of the machine: files that were not on the disk yet may be there with their names and times alone.
 */
import { posix } from 'node:path';
import * as v from 'valibot';
import { thisOwner } from '../../node/owner.ts';
import type { Call, Directory } from './directory.ts';
import { isAbandoned } from './is-abandoned.ts';
import type { Area } from './layout.ts';
import { workAt } from './work.ts';
import type { WorkName } from './work-name.ts';
import { bootOf, formatWorkName, parseWorkName, releasedOwner } from './work-name.ts';

const schema = v.object({
  format: v.literal(1),
  area: v.picklist(['v', 's']),
  id: v.string(),
  /** What is copied: this very volume or snapshot, not a later one of the same name. */
  from: v.string(),
});

/** What a copy becomes, and of what it is one. */
export type CopyNote = Omit<v.InferOutput<typeof schema>, 'format'>;

/** How long a copy of a volume waits for its request to come again, in milliseconds. */
const waitsMs = 3_600_000;

const notePath = (work: string) => posix.join(work, 'copy.json');

export async function writeNote({ files }: Directory, work: string, note: CopyNote): Promise<void> {
  await files.writeNew(notePath(work), `${JSON.stringify({ format: 1, ...note })}\n`);
}

async function readNote({ files }: Directory, work: string): Promise<CopyNote | undefined> {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), await files.read(notePath(work)));
  return parsed.success ? parsed.output : undefined;
}

/** Takes over the folder of a broken copy with this note. The new name of the folder; undefined: there is none. */
export async function adoptPartial(directory: Directory, call: Call, note: CopyNote): Promise<string | undefined> {
  const { files } = directory;
  const boot = bootOf(await thisOwner());
  for (const name of await partialsOf(directory, note)) {
    const { owner, work } = parseWorkName(name) as WorkName;
    const path = await takeFolder(directory, name);
    if (path === undefined) continue;
    const isSame = (await readNote(directory, path))?.from === note.from && bootOf(owner) === boot;
    if (isSame && (await files.kindOf(workAt(path, work).data(note.area, note.id)))) {
      await files.remove(workAt(path, work).record);
      return posix.basename(path);
    }
    await files.removeTree(path, path, call.signal);
  }
  return undefined;
}

/** Whether a folder that its owner has left should stay, as somebody is expected to go on with it. */
export async function isAwaited(directory: Directory, name: string): Promise<boolean> {
  const { files, layout } = directory;
  const path = posix.join(layout.tmp, name);
  const note = await readNote(directory, path);
  const work = parseWorkName(name)?.work;
  if (!note || work === undefined) return false;
  const { area, id } = note;
  // With a record it was whole: what there is to do is only to move it.
  if (!(await files.kindOf(workAt(path, work).data(area, id))) || (await files.kindOf(layout.record(area, id))))
    return false;
  if (area === 's' && (await files.kindOf(posix.join(layout.promises, `${id}.json`)))) return true;
  const touched = await files.touchedAt(path);
  return touched !== undefined && Date.now() - touched.getTime() < waitsMs;
}

/** Removes the broken copies of something that is not wanted any more. */
export async function dropPartials(directory: Directory, call: Call, area: Area, id: string): Promise<void> {
  for (const name of await partialsOf(directory, { area, id })) {
    const path = await takeFolder(directory, name);
    if (path !== undefined) await directory.files.removeTree(path, path, call.signal);
  }
}

/** Leaves a folder to whoever comes next, which may be a process that cannot see that this one has ended. */
export async function releasePartial({ files, layout }: Directory, name: string): Promise<void> {
  const left = parseWorkName(name);
  if (!left) return;
  const released = formatWorkName({ ...left, owner: releasedOwner(left.owner) });
  await files.move(posix.join(layout.tmp, name), posix.join(layout.tmp, released));
}

async function partialsOf(
  directory: Directory,
  { area, id }: Pick<CopyNote, 'area' | 'id'>,
): Promise<readonly string[]> {
  const { files, layout } = directory;
  const found: string[] = [];
  for (const name of await files.list(layout.tmp)) {
    if (!parseWorkName(name) || !(await isAbandoned(directory, name))) continue;
    const note = await readNote(directory, posix.join(layout.tmp, name));
    if (note?.area === area && note.id === id) found.push(name);
  }
  return found;
}

/** Makes a folder this process's own, which stops an owner that lives after all: his paths are gone. Its path; undefined: somebody was faster. */
async function takeFolder({ files, layout }: Directory, name: string): Promise<string | undefined> {
  const left = parseWorkName(name) as WorkName;
  const taken = posix.join(layout.tmp, formatWorkName({ ...left, owner: await thisOwner() }));
  const path = posix.join(layout.tmp, name);
  // Somebody may look for what has lain there too long.
  await files.touch(path).catch(() => {});
  return taken === path || (await files.move(path, taken)) ? taken : undefined;
}
