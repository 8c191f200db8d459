/** From offsets in a text to lines and columns. */
import type { Position } from './problem.ts';

/**
 * A function from offset to position, for offsets from 0 to the text's length; greater ones give the end. Columns count UTF-16 units, as
 * editors do. The YAML library has a counter of its own, but it misses line breaks within broken syntax.
 */
export function lineIndex(text: string): (offset: number) => Position {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    const within = Math.min(Math.max(offset, 0), text.length);
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= within) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: within - (starts[low] ?? 0) + 1 };
  };
}
