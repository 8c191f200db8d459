/** What a volume is called as a target: the last part of its IQN or NQN, and the name of its backstore. */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { CallError } from '../../../core/errors.ts';
import type { ShareRequest } from '../share.ts';
import type { ZfsStore } from '../store.ts';

const text = v.pipe(v.union([v.string(), v.number()], 'a text'), v.transform(String));

export const assetNameEntries = {
  /** Handlebars: `name` is the volume's id, `parameters` those of the class. */
  nameTemplate: v.optional(text),
  namePrefix: v.optional(text),
  nameSuffix: v.optional(text),
} as const;

export interface AssetNameOptions {
  readonly nameTemplate?: string | undefined;
  readonly namePrefix?: string | undefined;
  readonly nameSuffix?: string | undefined;
}

/**
 * Prefix, rendered template and suffix in lower case. Characters that the name of a target cannot have (RFC 3722) are written as dashes; since other
 * names could then give the same one, it gets a few digits of a hash. Throws INVALID_ARGUMENT for a name without any.
 */
export function assetName(options: AssetNameOptions, render: ZfsStore['render'], request: ShareRequest): string {
  const { nameTemplate, namePrefix = '', nameSuffix = '' } = options;
  const { volumeId, parameters } = request;
  const middle = nameTemplate === undefined ? volumeId : render(nameTemplate, { name: volumeId, parameters });
  const wanted = `${namePrefix}${middle}${nameSuffix}`.toLowerCase();
  const name = wanted.replace(/[^a-z0-9.:-]/g, '-');
  if (!/[a-z0-9]/.test(name)) {
    throw new CallError('INVALID_ARGUMENT', `no name of a target can be made of ${JSON.stringify(wanted)}`);
  }
  return name === wanted ? name : `${name}-${createHash('sha256').update(wanted).digest('hex').slice(0, 8)}`;
}

/** Whether the name cannot be told without the parameters of the volume's class. */
export function isOfParameters({ nameTemplate = '' }: AssetNameOptions): boolean {
  return /\{\{.*parameters/.test(nameTemplate);
}

/** Throws INVALID_ARGUMENT for an IQN or NQN that is longer than 223 bytes (RFC 7143, 4.2.7; NVMe Base, 4.5). */
export function requireQualifiedName(name: string): void {
  if (name.length <= 223) return;
  throw new CallError(
    'INVALID_ARGUMENT',
    `${name} has ${name.length} characters; the name of a target has at most 223`,
  );
}
