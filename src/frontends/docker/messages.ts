/** The requests of the volume plugin protocol, from hostile bytes to plain values. */
import * as v from 'valibot';
import { CallError } from '../../core/errors.ts';

const name = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(255),
  v.regex(/^\P{Cc}*$/u, 'a name has no control characters'),
);

const schema = v.object({
  Name: v.optional(name),
  ID: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(1024))),
  Opts: v.nullish(v.record(v.string(), v.string()), {}),
});

export type DockerMessage = v.InferOutput<typeof schema>;

/** Throws INVALID_ARGUMENT for text that is no request. An empty one is a request without fields. */
export function parseMessage(text: string): DockerMessage {
  const parsed = v.safeParse(schema, text.trim() === '' ? {} : parseJson(text));
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  throw invalid(`${v.getDotPath(issue) ?? 'the request'}: ${issue.message}`);
}

/** A field that this request must have. */
export function needed(message: DockerMessage, field: 'Name' | 'ID'): string {
  const value = message[field];
  if (value === undefined) throw invalid(`${field} is required`);
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('the request is not JSON');
  }
}

function invalid(message: string): CallError {
  return new CallError('INVALID_ARGUMENT', message);
}
