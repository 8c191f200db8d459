import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { generate } from '../generate.ts';
import { bundle } from './bundle.ts';
import { repository } from './repository.ts';
import { writeChanged } from './write-changed.ts';

/** Where {@link buildBundle} writes. */
export const bundlePath = join(repository, 'dist/switchboard.mjs');

/** Brings dist/switchboard.mjs up to date with the sources. Takes about a second. */
export async function buildBundle(): Promise<void> {
  await generate();
  await mkdir(dirname(bundlePath), { recursive: true });
  await writeChanged(bundlePath, await bundle());
}
