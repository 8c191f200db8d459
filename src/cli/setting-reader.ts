/** One setting from a flag or the environment: the flag, then `SWITCHBOARD_<NAME>`, then `DEMOCRATIC_CSI_<NAME>`. */
import type { Shell } from './shell.ts';
import { UsageError } from './usage-error.ts';

/** Parsed flags by camel-cased name; one that was not given is missing. */
export type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface SettingReader {
  text(name: string): string | undefined;
  /** A repeated flag, or a variable whose values are separated by commas. Empty: not given. */
  list(name: string): readonly string[];
  /** A repeated flag `key=value`, or a variable whose pairs are separated by white space. */
  pairs(name: string): Readonly<Record<string, string>>;
  yes(name: string): boolean;
  /** A whole number within the bounds. */
  integer(name: string, least: number, most: number): number | undefined;
}

const defaultPrefixes: readonly string[] = ['SWITCHBOARD_', 'DEMOCRATIC_CSI_'];

export function settingReader(flags: Flags, env: Shell['env'], prefixes = defaultPrefixes): SettingReader {
  const fromEnvironment = (name: string): string | undefined => {
    const variable = name.replaceAll('-', '_').toUpperCase();
    // An empty variable is how a shell or a job template says "not set".
    return prefixes.map((prefix) => env[prefix + variable]).find((value) => value !== undefined && value !== '');
  };
  const raw = (name: string) => flags[camelCase(name)] ?? fromEnvironment(name);
  const text = (name: string) => {
    const value = raw(name);
    return value === undefined || typeof value === 'boolean' ? undefined : String(value);
  };
  return {
    text,
    list(name) {
      const value = raw(name);
      if (Array.isArray(value)) return value.flatMap(splitList);
      return typeof value === 'string' ? splitList(value) : [];
    },
    pairs(name) {
      const value = raw(name);
      const texts = Array.isArray(value) ? value : typeof value === 'string' ? value.split(/\s+/).filter(Boolean) : [];
      return Object.fromEntries(texts.map((one) => pair(name, one)));
    },
    yes(name) {
      const value = raw(name);
      if (typeof value !== 'string') return value === true;
      if (/^(1|true|yes|on)$/i.test(value)) return true;
      if (/^(0|false|no|off)$/i.test(value)) return false;
      throw new UsageError(`${name}: "${value}" is neither true nor false`);
    },
    integer(name, least, most) {
      const value = text(name);
      if (value === undefined) return undefined;
      const number = /^\d+$/.test(value.trim()) ? Number(value) : Number.NaN;
      if (number >= least && number <= most) return number;
      throw new UsageError(`${name}: "${value}" is not a whole number from ${least} to ${most}`);
    },
  };
}

function pair(name: string, text: string): [string, string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new UsageError(`${name}: "${text}" is not key=value`);
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

function camelCase(name: string): string {
  return name.replace(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
}
