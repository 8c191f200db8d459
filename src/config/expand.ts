/** Variables of the environment in configuration values. */
import type { Path } from './path.ts';
import { formatPath } from './path.ts';
import { isMap } from './schema.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Expansion {
  readonly value: unknown;
  /** The texts that contained variables, by formatted path. */
  readonly expanded: ReadonlyMap<string, ExpandedText>;
  /** Mentions of variables that are not set. */
  readonly unset: readonly { readonly path: Path; readonly variable: string }[];
}

export interface ExpandedText {
  /** As it is in the file, such as `$NAS_PORT`. */
  readonly template: string;
  readonly text: string;
}

/**
 * Replaces `$NAME` and `${NAME}` in every text value; keys stay as they are. `$$` is a literal dollar, and a dollar before anything else, as in
 * `${match:1}` or `^a$`, stays. A variable that is not set gives the empty text.
 *
 * A text that had variables and is JSON afterwards becomes that JSON value, as with democratic-csi: `$PORT` with 22 is the number, a list can
 * be handed over as `["a"]`, and 0777, which is not JSON, stays text. What a variable contains is not expanded again.
 */
export function expandVariables(value: unknown, env: Environment): Expansion {
  const expanded = new Map<string, ExpandedText>();
  const unset: { path: Path; variable: string }[] = [];

  const expand = (item: unknown, path: Path): unknown => {
    if (typeof item === 'string') return expandText(item, path);
    if (Array.isArray(item)) return item.map((one, index) => expand(one, [...path, index]));
    if (!isMap(item)) return item;
    return Object.fromEntries(Object.entries(item).map(([key, one]) => [key, expand(one, [...path, key])]));
  };

  const expandText = (template: string, path: Path): unknown => {
    if (!template.includes('$')) return template;
    let variables = 0;
    const text = template.replace(mention, (_match, bare?: string, braced?: string) => {
      const variable = bare ?? braced;
      if (variable === undefined) return '$';
      variables++;
      const content = Object.hasOwn(env, variable) ? env[variable] : undefined;
      if (content === undefined) unset.push({ path, variable });
      return content ?? '';
    });
    if (variables === 0) return text;
    expanded.set(formatPath(path), { template, text });
    return jsonOrText(text);
  };

  return { value: expand(value, []), expanded, unset };
}

const mention = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g;

/** The largest JSON value worth looking at: one variable can be longer than any configuration. */
const maxJson = 65_536;

function jsonOrText(text: string): unknown {
  if (text.length > maxJson) return text;
  try {
    const value: unknown = JSON.parse(text);
    // The text "null" would otherwise unset the key.
    return value === null || isDeep(value, 32) ? text : value;
  } catch {
    return text;
  }
}

function isDeep(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeep(item, levels - 1));
}
