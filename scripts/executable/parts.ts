import { type FileHandle, open, readFile } from 'node:fs/promises';

/** One part of the executable: a file and the name the launcher gives it. */
export interface Part {
  readonly name: string;
  readonly content: Uint8Array;
}

// These are the numbers of scripts/launcher/payload.h.
const magic = Buffer.from('switchboard-parts'.padEnd(24, '\0'));
const maximum = 14;
const nameSize = 48;
const entrySize = 16 + nameSize;
/** The largest page size there is (arm64): a part can be mapped from its place in the file on every machine. */
const alignment = 65_536;

/**
 * Writes launcher and parts into one file and makes it executable. The first part is the program, the second its dynamic
 * loader, all others are libraries.
 */
export async function joinParts(launcherPath: string, parts: readonly Part[], output: string): Promise<void> {
  const launcher = await readFile(launcherPath);
  const places = placesBehind(launcher.length, parts);
  fillTable(launcher, parts, places);
  const file = await open(output, 'w', 0o755);
  try {
    await writeAll(file, launcher, 0);
    for (const [index, part] of parts.entries()) await writeAll(file, part.content, places[index]!);
    // Whatever the umask.
    await file.chmod(0o755);
  } finally {
    await file.close();
  }
}

function placesBehind(start: number, parts: readonly Part[]): number[] {
  let end = start;
  return parts.map(({ content }) => {
    const place = Math.ceil(end / alignment) * alignment;
    end = place + content.length;
    return place;
  });
}

function fillTable(launcher: Buffer, parts: readonly Part[], places: readonly number[]): void {
  if (parts.length > maximum) throw new Error(`the launcher has room for ${maximum} parts, not for ${parts.length}`);
  const start = launcher.indexOf(magic);
  if (start < 0 || launcher.indexOf(magic, start + 1) >= 0) throw new Error('the launcher must have exactly one table');
  launcher.fill(0, start + magic.length, start + magic.length + maximum * entrySize);
  for (const [index, { name, content }] of parts.entries()) {
    const entry = start + magic.length + index * entrySize;
    if (Buffer.byteLength(name) >= nameSize) throw new Error(`the name ${name} is too long for the launcher's table`);
    launcher.writeBigUInt64LE(BigInt(places[index]!), entry);
    launcher.writeBigUInt64LE(BigInt(content.length), entry + 8);
    launcher.write(name, entry + 16);
  }
}

async function writeAll(file: FileHandle, content: Uint8Array, place: number): Promise<void> {
  for (let done = 0; done < content.length; ) {
    const { bytesWritten } = await file.write(content, done, content.length - done, place + done);
    done += bytesWritten;
  }
}
