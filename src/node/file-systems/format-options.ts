/** Options for making a file system that come with a volume: from its class, by way of its context. */
import { CallError } from '../../core/errors.ts';
import type { FileSystem } from './file-system.ts';
import { wantedFileSystem } from './index.ts';

/** Where they are, in parameters of classes and in contexts of volumes. */
export const formatOptions = 'formatOptions';

const longest = 1024;

/** What the words of the options may be: no paths, and nothing that would have another device or file written to or read. */
const values = /^[\w.,:=^+~@% ][\w.,:=^+~@% -]*$/;
const foreign = /(?:^|,)\s*(?:name|file|logdev|rtdev|device|offset|protofile)\s*(?:=|,|$)/;

/**
 * The options as words, for the file system `fsType` (empty: the default). Volumes come from people who may make volumes, which is not to say that they
 * may do all that a format program can do as root: so only what says how the file system is made is taken. Throws INVALID_ARGUMENT.
 */
export function parseFormatOptions(text: string, fsType: string): readonly string[] {
  const { name, fileSystem } = wantedFileSystem(fsType);
  if (text.length > longest) throw refusal(name, `they have more than ${longest} characters`);
  const words = splitWords(name, text);
  for (let index = 0; index < words.length; ) {
    const option = optionAt(words, index, name, fileSystem);
    if (option.value !== undefined && (!values.test(option.value) || foreign.test(option.value))) {
      throw refusal(name, `the value ${JSON.stringify(option.value)} is not taken from a volume`);
    }
    index += option.words;
  }
  return words;
}

interface Option {
  /** How many words it has. */
  readonly words: number;
  readonly value?: string | undefined;
}

function optionAt(words: readonly string[], index: number, name: string, { ownOptions }: FileSystem): Option {
  const { flags, valued, long = [] } = ownOptions;
  const word = words[index] ?? '';
  const [, longName = '', longValue] = /^--([a-z-]+)(?:=(.*))?$/s.exec(word) ?? [];
  if (long.includes(longName)) return { words: 1, value: longValue };
  const [, letter = ' ', rest = ''] = /^-([A-Za-z])(.*)$/s.exec(word) ?? [];
  if (flags.includes(letter) && rest === '') return { words: 1 };
  if (valued.includes(letter)) {
    if (rest !== '') return { words: 1, value: rest };
    if (index + 1 < words.length) return { words: 2, value: words[index + 1] };
    throw refusal(name, `${word} is without a value`);
  }
  throw refusal(
    name,
    `${JSON.stringify(word)} is not taken from a volume; node.format of the configuration may have it`,
  );
}

/** Words as a shell has them: blanks part them, quotes and backslashes keep them together. Nothing else has a meaning. */
function splitWords(name: string, text: string): readonly string[] {
  const words: string[] = [];
  const rest = text.replace(/\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+)/gs, (_all, word: string) => {
    words.push(
      word.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/gs, (_part, double?: string, single?: string, one?: string) => {
        return double === undefined ? (single ?? one ?? '') : double.replace(/\\(["\\])/g, '$1');
      }),
    );
    return '';
  });
  if (rest.trim() !== '') throw refusal(name, 'a quote is not closed');
  return words;
}

function refusal(name: string, why: string): CallError {
  return new CallError('INVALID_ARGUMENT', `the ${formatOptions} of this volume are not fit for ${name}: ${why}`);
}
