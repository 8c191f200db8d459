/** Sizes as requests state them, compared as numbers. */
import { CallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import type { CapacityRange } from '../../core/volume.ts';

/** The size of a volume, in bytes, when the request leaves it open. */
const defaultVolumeBytes = 2 ** 30;

/** Throws OUT_OF_RANGE when no size can fit the range. */
export function requireRange(range: CapacityRange): void {
  const { requiredBytes, limitBytes } = range;
  if (requiredBytes && limitBytes && requiredBytes > limitBytes) {
    throw new CallError(
      'OUT_OF_RANGE',
      `the required size of ${requiredBytes} bytes is above the limit of ${limitBytes} bytes`,
    );
  }
}

/** Whether a volume of this size answers a request for that range. */
export function fitsRange(bytes: number, range: CapacityRange): boolean {
  return bytes >= (range.requiredBytes ?? 0) && bytes <= (range.limitBytes || Number.POSITIVE_INFINITY);
}

/**
 * The size of a new volume in bytes: what is required, else the limit, else the larger of 1 GiB and `least`. `least` is what its content
 * needs, zero when it has none. Throws OUT_OF_RANGE when the range has no room for it.
 */
export function chooseSize(range: CapacityRange, least = 0): number {
  requireRange(range);
  const bytes = range.requiredBytes || range.limitBytes || Math.max(defaultVolumeBytes, least);
  if (bytes < least) {
    throw new CallError(
      'OUT_OF_RANGE',
      `${bytes} bytes (${formatSize(bytes)}) are less than the source's ${least} bytes (${formatSize(least)})`,
    );
  }
  return bytes;
}
