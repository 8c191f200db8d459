import { CallError } from '../../core/errors.ts';

/** Words that no shell reads anything into. */
const plain = /^[A-Za-z0-9_@%+:,./][A-Za-z0-9_@%+=:,./-]*$/;

/**
 * One word for a POSIX shell, which sees it as it is: the only way in which a string gets into a command (POSIX 2024, Shell Command Language, 2.2.2).
 * Throws INVALID_ARGUMENT for a NUL, which no argument can have.
 */
export function quote(word: string): string {
  if (word.includes('\0')) throw new CallError('INVALID_ARGUMENT', 'a name or value has a NUL character in it');
  return plain.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
