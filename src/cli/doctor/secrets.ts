/** Keeping secrets out of what is shown, whoever put them into a message. */
import type { GenericSchema } from 'valibot';
import { redacted } from '../../config/secret.ts';
import type { Finding } from './finding.ts';

/** Shorter ones are in too many other words to be found. */
const leastLength = 4;

/** The values of a configuration that {@link redacted} hides. */
export function secretsIn(schema: GenericSchema | undefined, input: unknown): readonly string[] {
  return schema === undefined ? textsOf(input) : hidden(input, redacted(schema, input));
}

function hidden(value: unknown, shown: unknown): readonly string[] {
  if (shown === '***') return textsOf(value);
  if (typeof value !== 'object' || value === null || typeof shown !== 'object' || shown === null) return [];
  return Object.entries(value).flatMap(([key, one]) => hidden(one, (shown as Readonly<Record<string, unknown>>)[key]));
}

/** All that is within a value, keys left out. A text of several lines may come back line by line. */
function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(textsOf);
  if (typeof value !== 'string' && typeof value !== 'number') return [];
  const text = String(value);
  const texts = text.includes('\n') ? [text, ...text.split('\n').map((line) => line.trim())] : [text];
  return texts.filter((one) => one.length >= leastLength);
}

/** The findings with `***` in the place of every secret. */
export function withoutSecrets(findings: readonly Finding[], secrets: readonly string[]): readonly Finding[] {
  // The longer first: one may be the beginning of another.
  const all = [...new Set(secrets)].toSorted((a, b) => b.length - a.length);
  if (all.length === 0) return findings;
  const clean = (text: string) => all.reduce((shown, secret) => shown.replaceAll(secret, '***'), text);
  return findings.map(({ advice, ...finding }) => ({
    ...finding,
    name: clean(finding.name),
    detail: clean(finding.detail),
    ...(advice !== undefined && { advice: clean(advice) }),
  }));
}
