/** Volumes by the names they were made under, for clients that know nothing but names (Docker). Made by core/find-volumes.ts and the proxy. */
import type { CallContext } from './call.ts';
import type { CallError } from './errors.ts';
import type { VolumeStatus } from './volume.ts';

/** A name, and which connection it is on where that is said. */
export interface CatalogName {
  readonly connection?: string | undefined;
  readonly name: string;
}

export interface CatalogEntry {
  /** Undefined for a driver that serves directly. */
  readonly connection: string | undefined;
  /** The volume's id as the connection's own driver has it. */
  readonly innerId: string;
  /** With the id that clients use. */
  readonly status: VolumeStatus;
}

export interface Findings {
  readonly entries: readonly CatalogEntry[];
  /** Who could not be asked. What they have is not among the entries, and may be there all the same. */
  readonly failures: readonly { readonly connection: string | undefined; readonly error: CallError }[];
  /** Connections whose answer is complete. */
  readonly complete: ReadonlySet<string | undefined>;
}

export interface Catalog {
  /** `connection/name`, where there are connections; everything else is a name as it stands. */
  parse(text: string): CatalogName;
  /** The connection of a volume's id. Undefined for a driver that serves directly, and for text that is no id. */
  connectionOf(volumeId: string): string | undefined;
  /** The connection that new volumes come to when the request names none. */
  readonly defaultConnection?: string | undefined;
  /** Volumes made under this name, or with this id; on all connections when none is named. One connection's failure is no failure of the call. */
  find(call: CallContext, name: CatalogName): Promise<Findings>;
  all(call: CallContext): Promise<Findings>;
  /** Whether every volume can be reached from every node. */
  isShared(call: CallContext): Promise<boolean>;
}
