/**
 * Numbers of logical units. A LUN is eight bytes in which a number can be written in several ways (SAM-5, 4.7); Linux shows and takes these bytes
 * as one number, in pairs with the first pair lowest, so that LUN 256 of one target is 256 and of another 16640.
 */

/** The highest number that can be written. */
export const highestLun = 2 ** 24 - 1;

const flatBits = 0x4000;
const extendedBits = 0xd200;

/** As which numbers Linux may know a LUN, the likeliest first. */
export function lunCodes(lun: number): readonly number[] {
  if (lun < 256) return [lun, flatBits | lun];
  // Flat before plain: to a target that ignores what it does not know, the plain one could be another LUN, of one byte.
  if (lun < flatBits) return [flatBits | lun, lun];
  const extended = (extendedBits | (lun >>> 16)) + (lun & 0xffff) * 0x10000;
  return lun <= 0xffff ? [extended, lun] : [extended];
}

/** The LUN that Linux knows by a number. Undefined: written in a way that targets of iSCSI do not use. */
export function lunOfCode(code: number): number | undefined {
  const low = code % 0x10000;
  const high = Math.floor(code / 0x10000);
  if (high === 0) return low >> 14 === 1 ? low & 0x3fff : low;
  if ((low & 0xff00) === extendedBits && high <= 0xffff) return ((low & 0xff) << 16) | high;
  return undefined;
}
