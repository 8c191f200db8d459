/** Docker's names of volumes, as file names and read back from ids. */
import { shortenId } from '../../drivers/common/shorten-id.ts';
import { decodeName, encodeName } from '../../drivers/common/volume-id.ts';

/** Bytes of a file name that leave room for an ending. */
const maxBytes = 200;

/** A file name for a volume's name, the same for the same name and different for different ones. */
export function fileNameOf(name: string): string {
  return shortenId(encodeName(name), maxBytes);
}

/** The name that drivers turn into this id, where it can be read back; the id itself otherwise. */
export function nameOfId(id: string): string {
  return decodeName(id) ?? id;
}
