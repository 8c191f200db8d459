/** The log of a server process, line by line as it comes. */
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

export type LogLine = Readonly<Record<string, unknown>>;

export interface LogLines {
  /** Lines so far. */
  readonly lines: readonly LogLine[];
  /** The next line with this message, after the one that was asked for last. Rejects when the output ends without. */
  logged(message: string | RegExp): Promise<LogLine>;
}

export function readLog(output: Readable): LogLines {
  const lines: LogLine[] = [];
  const news = new EventEmitter().setMaxListeners(0);
  let over = false;
  let next = 0;
  createInterface(output)
    .on('line', (line) => {
      lines.push(JSON.parse(line));
      news.emit('change');
    })
    .on('close', () => {
      over = true;
      news.emit('change');
    });
  return {
    lines,
    async logged(message) {
      for (;;) {
        const at = lines.findIndex((line, index) => index >= next && fits(line, message));
        if (at >= 0) {
          next = at + 1;
          return lines[at] ?? {};
        }
        if (over) throw new Error(`it ended before it logged ${message}`);
        await once(news, 'change');
      }
    },
  };
}

function fits({ message }: LogLine, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? message === wanted : wanted.test(String(message));
}
