/** What a YAML syntax error means, in the words of somebody who writes configuration files. */
import type { YAMLError } from 'yaml';
import { oneLine } from '../core/errors.ts';

const messages: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_DQ_ESCAPE: 'an unknown escape after a backslash within double quotes: double the backslash, or use single quotes',
  BAD_INDENT: 'wrong indentation: the keys of one map, and the items of one list, begin in the same column',
  BLOCK_AS_IMPLICIT_KEY: 'a second "key: value" on one line: put it on a line of its own, or the value in quotes',
  MULTILINE_IMPLICIT_KEY: 'expected "key: value": a colon is missing, or the indentation is wrong',
  MULTIPLE_DOCS: 'a second document (---): a configuration file holds one',
  TAB_AS_INDENT: 'tabs cannot indent in YAML: use spaces',
  RESOURCE_EXHAUSTION: 'nested too deeply',
};

/** One line without any of the file's values: they may be secrets. */
export function syntaxMessage(error: YAMLError): string {
  const known = messages[error.code];
  if (known !== undefined) return known;
  if (/^Implicit map keys need to be followed/.test(error.message)) return messages.MULTILINE_IMPLICIT_KEY ?? '';
  if (/^Nested mappings/.test(error.message)) return messages.BLOCK_AS_IMPLICIT_KEY ?? '';
  // In messages of this kind the library quotes the file after a colon.
  const text = error.code === 'UNEXPECTED_TOKEN' ? error.message.replace(/: .*$/s, '') : error.message;
  return `not valid YAML: ${text.charAt(0).toLowerCase()}${oneLine(text.slice(1))}`;
}
