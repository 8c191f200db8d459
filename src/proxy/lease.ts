import type { Connection } from './connection.ts';
import { namingConnection } from './connection-error.ts';

/** A connection in use. It stays open until `release` is called. */
export interface Lease {
  readonly connection: Connection;
  release(): void;
}

/** Runs `work` on the connection, and releases it. Every error says which connection it is. */
export async function useLease<T>(lease: Lease, work: (connection: Connection) => Promise<T>): Promise<T> {
  try {
    return await work(lease.connection);
  } catch (error) {
    throw namingConnection(lease.connection.name, error);
  } finally {
    lease.release();
  }
}
