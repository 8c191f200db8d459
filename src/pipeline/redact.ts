/** What may be logged of a request: everything but the fields that the specification marks as secret, and values whose key says so. */

const hidden = '***';

/** Keys of free maps (volume_context, parameters) that carry credentials in practice, such as oneclient's `token` or objectivefs' `env.*`. */
const secretKey = /pass(word|phrase|wd)?|secret|token|credential|private|api_?key|access_?key|licen[cs]e/i;

/** A copy for the log. `secretFields`: names of the message's fields with the `csi_secret` mark. */
export function redacted(message: object, secretFields: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(message)
      .filter(([, value]) => !isEmpty(value))
      .map(([key, value]) => [key, secretFields.has(key) ? hideAll(value) : hideByKey(value)]),
  );
}

function hideAll(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return hidden;
  return Object.fromEntries(Object.keys(value).map((key) => [key, hidden]));
}

function hideByKey(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hideByKey);
  if (value === null || typeof value !== 'object') return typeof value === 'string' ? hideInOptions(value) : value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, secretKey.test(key) ? hideAll(inner) : hideByKey(inner)]),
  );
}

/** Mount options such as `username=u,password=p` may carry a password in the middle of a harmless text. */
function hideInOptions(text: string): string {
  return text.replace(/\b(pass(?:word|wd)?|credentials?)=[^,\s]*/gi, `$1=${hidden}`);
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return typeof value === 'object' && !(value instanceof Date) && Object.keys(value).length === 0;
}
