/** HTML from templates in which every value is text unless it was made by a template itself. */

/** Markup that is safe to send. Only {@link html} and {@link trusted} make it. */
export interface Html {
  readonly markup: string;
}

type Value = Html | string | number | false | undefined | readonly Value[];

/**
 * Nothing is written for `undefined` and `false`, and the parts of a list one after the other. Templates are written in ASCII, for the bundle
 * is: `&hellip;` and the like.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  const parts = values.map((value, index) => written(value) + strings[index + 1]);
  return { markup: strings[0] + parts.join('') };
}

/** Text of our own that is markup already. */
export function trusted(markup: string): Html {
  return { markup };
}

function written(value: Value): string {
  if (value === undefined || value === false) return '';
  if (Array.isArray(value)) return value.map(written).join('');
  return typeof value === 'object' && 'markup' in value ? value.markup : escaped(String(value));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Control characters, and those that hide others or change the direction of what follows: a name must not look like another. */
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to find
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu;

/** Text for an element or a quoted attribute. Characters that cannot be seen are written as `\u202e`. */
export function escaped(text: string): string {
  return text
    .replace(invisible, (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)
    .replace(/[&<>"']/g, (character) => entities[character] ?? '');
}
