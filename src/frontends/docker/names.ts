/** Docker's names of volumes, as file names and read back from ids. */
import { shortenId } from '../../drivers/common/shorten-id.ts';
import { encodeName, isVolumeId } from '../../drivers/common/volume-id.ts';

/** Bytes of a file name that leave room for an ending. */
const maxBytes = 200;

/** A file name for a volume's name, the same for the same name and different for different ones. */
export function fileNameOf(name: string): string {
  return shortenId(encodeName(name), maxBytes);
}

/** The name that drivers turn into this id, where it can be read back; the id itself otherwise. */
export function nameOfId(id: string): string {
  if (!isVolumeId(id)) return id;
  const bytes = id.replace(/\.([0-9a-f]{2})|([^.])/g, (_all, hex: string | undefined, plain: string | undefined) =>
    String.fromCharCode(hex === undefined ? (plain ?? '').charCodeAt(0) : Number.parseInt(hex, 16)),
  );
  const name = Buffer.from(bytes, 'latin1').toString('utf8');
  return encodeName(name) === id ? name : id;
}
