/** Secrets for volumes, from files of one folder and from nowhere else. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CallError, errnoOf } from '../../core/errors.ts';

/** A secret is a word, a key or a certificate. */
const maxBytes = 65_536;

export type SecretFiles = (files: Readonly<Record<string, string>>) => Promise<Readonly<Record<string, string>>>;

/**
 * Reads the files; one line end at the end of a file is not part of the secret. Throws FAILED_PRECONDITION, naming the file and never its content,
 * for a file that is missing or not below the folder. `folder` undefined: there are no secrets.
 */
export function secretFiles(folder: string | undefined): SecretFiles {
  return async (files) => {
    const entries = await Promise.all(
      Object.entries(files).map(async ([key, file]) => [key, await readSecret(folder, key, file)] as const),
    );
    return Object.fromEntries(entries);
  };
}

async function readSecret(folder: string | undefined, key: string, file: string): Promise<string> {
  if (folder === undefined) {
    throw unusable(`secret ${key}: no folder of secrets is set (--docker-secrets-folder)`);
  }
  const [root, path] = await Promise.all([realpathOf(key, folder), realpathOf(key, join(folder, file))]);
  if (file.includes('\0') || !path.startsWith(`${root}/`)) {
    throw unusable(`secret ${key}: ${JSON.stringify(file)} is not in the folder of secrets`);
  }
  return await readSmall(key, path);
}

async function realpathOf(key: string, path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    throw unusable(`secret ${key}: ${path} cannot be read (${errnoOf(error) ?? 'not a path'})`);
  }
}

async function readSmall(key: string, path: string): Promise<string> {
  // Looked at before it is opened: opening a pipe would wait for ever.
  const found = await stat(path);
  if (!found.isFile() || found.size > maxBytes) {
    throw unusable(`secret ${key}: ${path} is not a file of at most ${maxBytes} bytes`);
  }
  return (await readFile(path, 'utf8')).replace(/\r?\n$/, '');
}

function unusable(message: string): CallError {
  return new CallError('FAILED_PRECONDITION', message);
}
