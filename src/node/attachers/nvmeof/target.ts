import { CallError } from '../../../core/errors.ts';
import type { VolumeContext } from '../../../core/volume.ts';
import type { Identity } from '../attacher.ts';
import { isPlainValue } from './connect-options.ts';
import { parseTransport, type Transport } from './transport.ts';

/** A namespace of a subsystem, and the ways to it. */
export interface Target extends NamespaceName {
  readonly transports: readonly Transport[];
  /** What the namespace's UUID or NGUID has to be, in lower case and hexadecimal digits only. Undefined: not known. */
  readonly uuid?: string | undefined;
  readonly nguid?: string | undefined;
}

export interface NamespaceName {
  readonly nqn: string;
  readonly nsid: string;
}

/** Reads a volume context. Throws INVALID_ARGUMENT. */
export function parseTarget(context: VolumeContext): Target {
  const uris = [context.transport ?? '', ...(context.transports ?? '').split(',')].map((uri) => uri.trim());
  const transports = [...new Set(uris.filter((uri) => uri !== ''))].map(parseTransport);
  if (transports.length === 0) {
    throw new CallError('INVALID_ARGUMENT', 'the volume context has neither `transport` nor `transports`');
  }
  const uuid = parseId(context, 'uuid');
  const nguid = parseId(context, 'nguid');
  return { ...parseNamespaceName(context), transports, uuid, nguid };
}

/** Reads what tells the namespace from all others: of a volume context, or of an identity. Throws INVALID_ARGUMENT. */
export function parseNamespaceName({ nqn = '', nsid = '' }: VolumeContext | Identity): NamespaceName {
  // NVM Express Base Specification, 4.7: at most 223 bytes.
  if (!isPlainValue(nqn) || nqn.length > 223) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `the volume context’s nqn ${JSON.stringify(nqn.slice(0, 60))} is not an NQN`,
    );
  }
  if (!/^\d{1,10}$/.test(nsid) || Number(nsid) < 1 || Number(nsid) >= 0xffffffff) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `the volume context’s nsid ${JSON.stringify(nsid.slice(0, 60))} is not one`,
    );
  }
  return { nqn, nsid: String(Number(nsid)) };
}

function parseId(context: VolumeContext, key: 'uuid' | 'nguid'): string | undefined {
  const text = context[key]?.trim();
  if (!text) return undefined;
  const digits = idDigits(text);
  if (digits !== undefined) return digits;
  throw new CallError('INVALID_ARGUMENT', `the volume context’s ${key} is not 32 hexadecimal digits`);
}

/** A UUID or NGUID as 32 digits, however it is written. All zeros mean that there is none. */
export function idDigits(text: string): string | undefined {
  const digits = text
    .trim()
    .toLowerCase()
    .replace(/^(uuid|eui)\./, '')
    .replaceAll('-', '');
  return /^[0-9a-f]{32}$/.test(digits) && !/^0+$/.test(digits) ? digits : undefined;
}
