import { readFile, rename, writeFile } from 'node:fs/promises';

/** Writes a file at once, and only when its content differs: what is made from it stays fresh by its time. */
export async function writeChanged(path: string, content: string): Promise<void> {
  const before = await readFile(path, 'utf8').catch(() => undefined);
  if (before === content) return;
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, content);
  await rename(temporary, path);
}
