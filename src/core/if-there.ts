import { errnoOf } from './errors.ts';

/** What `look` finds; undefined where there is no such file, or something on the way to it is no folder. Throws what else goes wrong. */
export async function ifThere<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
