/** So many names of datasets or snapshots fit into one argument, which has at most 128 KiB on Linux (execve(2)): each has at most 255 bytes. */
const most = 400;

/** Cuts a list into lots. */
export function inLots<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / most) }, (_, index) =>
    all.slice(index * most, (index + 1) * most),
  );
}
