import { join } from 'node:path';

/** The folder that holds package.json. */
export const repository = join(import.meta.dirname, '../..');
