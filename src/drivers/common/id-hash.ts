import { createHash } from 'node:crypto';
import crc8 from 'crc/crc8';
import crc16 from 'crc/crc16';
import crc32 from 'crc/crc32';

/** Values of `_private.csi.volume.idHash.strategy`. */
export type IdHash = 'md5' | 'crc8' | 'crc16' | 'crc32';

/** MD5 as hexadecimal digits; CRC-8, CRC-16/ARC and CRC-32 as decimal numbers, as democratic-csi writes them. */
export function hashId(text: string, hash: IdHash): string {
  switch (hash) {
    case 'md5':
      return createHash('md5').update(text).digest('hex');
    case 'crc8':
      return String(crc8(text));
    case 'crc16':
      return String(crc16(text));
    case 'crc32':
      return String(crc32(text));
  }
}
