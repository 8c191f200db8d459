/** Cuts a stream into lines, shows each to `take` and passes on to `keep` those that it does not take. */

export interface UntakenLines {
  add(chunk: Buffer): void;
  /** There is no more: what is left is a line, too. */
  end(): void;
}

/** A line without an end would fill the memory. Longer ones are passed on in parts that nobody is shown. */
const longestLine = 2 ** 20;

const newline = 0x0a;

export function untakenLines(take: (line: string) => boolean, keep: (chunk: Buffer) => void): UntakenLines {
  let begun: Buffer[] = [];
  let length = 0;
  let overlong = false;

  function hold(part: Buffer): void {
    begun.push(part);
    length += part.length;
    if (length <= longestLine) return;
    overlong = true;
    keep(Buffer.concat(begun));
    begun = [];
    length = 0;
  }

  function finish(end: string): void {
    const line = Buffer.concat(begun);
    const shown = !overlong && length > 0;
    begun = [];
    length = 0;
    overlong = false;
    if (shown && take(line.toString('utf8'))) return;
    keep(Buffer.concat([line, Buffer.from(end)]));
  }

  return {
    add(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
        hold(chunk.subarray(from, at));
        finish('\n');
        from = at + 1;
      }
      if (from < chunk.length) hold(chunk.subarray(from));
    },
    end() {
      if (length > 0 || overlong) finish('');
    },
  };
}
