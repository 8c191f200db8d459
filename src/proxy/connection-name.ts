/** Names of connections: a connection is the file `<configFolder>/<name>.yaml`. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** The only ending a connection file may have; one ending means that a name can never stand for two files. */
export const connectionFileEnding = '.yaml';

/** True for a name that is safe as a file name: it has no separator and does not begin with a dot, so it cannot leave the folder. */
export function isConnectionName(name: string): boolean {
  return namePattern.test(name);
}

/** The connection's name when the file name is one of a connection file, or else undefined. */
export function connectionNameOf(fileName: string): string | undefined {
  if (!fileName.endsWith(connectionFileEnding)) return undefined;
  const name = fileName.slice(0, -connectionFileEnding.length);
  return isConnectionName(name) ? name : undefined;
}

/** Byte order, the same on every node and in every locale: page tokens depend on it. */
export function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
