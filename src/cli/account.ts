import { homedir } from 'node:os';
import type { Account } from './state-directory.ts';

/** Who runs this process. */
export function currentAccount(): Account {
  return { isRoot: process.getuid?.() === 0, home: homeFolder() };
}

/** A bare root without HOME has no list of users either, and then there is no answer. */
function homeFolder(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}
