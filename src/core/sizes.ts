/** Sizes as people write them. Everything inside the program is bytes as a number. */
import { CallError } from './errors.ts';

const units: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
  p: 1e15,
  ki: 2 ** 10,
  mi: 2 ** 20,
  gi: 2 ** 30,
  ti: 2 ** 40,
  pi: 2 ** 50,
};

/** `10Gi`, `10GiB`, `10G` (10^9), `1.5 TB`, `1073741824` → bytes. Throws INVALID_ARGUMENT for anything else, and for more than 2^53-1. */
export function parseSize(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgtp]i?)?b?\s*$/i.exec(text);
  const unit = match && units[(match[2] ?? '').toLowerCase()];
  const bytes = match && unit ? Math.round(Number(match[1]) * unit) : Number.NaN;
  if (!Number.isSafeInteger(bytes)) {
    throw new CallError(
      'INVALID_ARGUMENT',
      `"${text}" is not a size: write bytes, or a number with Ki, Mi, Gi, Ti (or k, M, G, T)`,
    );
  }
  return bytes;
}

/** Bytes for people, in powers of 1024 with at most one decimal: `1.5 GiB`. */
export function formatSize(bytes: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const step = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), names.length - 1);
  const value = bytes / 2 ** (10 * step);
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${names[step]}`;
}

/** The least multiple of `block` that is not less, both in bytes. */
export function roundUp(bytes: number, block: number): number {
  return Math.ceil(bytes / block) * block;
}
