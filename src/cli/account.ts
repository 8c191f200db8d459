import { homedir } from 'node:os';
import type { Account } from './state-directory.ts';

/** Who runs this process. */
export function currentAccount(): Account {
  return { isRoot: process.getuid?.() === 0, home: homedir() };
}
