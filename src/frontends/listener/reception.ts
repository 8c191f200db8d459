/** Receives fresh connections, finds out what they speak, and keeps track of them until they end. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { oneLine } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { filteredStream } from './filtered-stream.ts';
import { createFrameFilter } from './frames.ts';
import { sniff } from './sniff.ts';
import { createWaitingRoom } from './waiting-room.ts';

/** Silent connections at once; beyond, the oldest of them ends. */
const waitingPlaces = 256;

export interface ReceptionOptions {
  readonly log: Logger;
  readonly firstBytesLimitMs: number;
  readonly onHttp2: (stream: Duplex) => void;
  readonly onHttp1: (socket: Duplex) => void;
}

export interface Reception {
  /** A connection came. From here on it is tracked, its errors are handled, and the time in which it must speak runs. */
  enter(raw: Socket): void;
  /** Its bytes can be read, from `stream`: the connection itself, or TLS on it. */
  greet(stream: Duplex, raw: Socket): void;
  /** Ends the connections that have said nothing yet. */
  endSilent(): void;
  /** Ends all connections and resolves when they are gone. */
  endAll(): Promise<void>;
}

export function createReception(options: ReceptionOptions): Reception {
  const { log } = options;
  const connections = new Set<Socket>();
  const silent = createWaitingRoom({ limitMs: options.firstBytesLimitMs, places: waitingPlaces });
  // Deno's HTTP/2 server, in several releases, ends the process on a GOAWAY of a client.
  const dropGoaway = 'Deno' in globalThis;

  function hand(stream: Duplex, take: () => void): void {
    try {
      take();
    } catch (error) {
      log.error('a connection could not be served', { error });
      stream.destroy();
    }
  }

  function http2(stream: Duplex, head: Buffer): void {
    const filtered = filteredStream(stream, {
      head,
      filter: createFrameFilter({ dropGoaway }),
      onRefusal: (reason) => log.verbose(`a client broke the HTTP/2 protocol: ${oneLine(reason.message)}`),
    });
    if (!filtered.destroyed) options.onHttp2(filtered);
  }

  return {
    enter(raw) {
      connections.add(raw);
      silent.enter(raw);
      raw.on('error', (error) => log.debug('a connection failed', { reason: oneLine(error.message) }));
      raw.once('close', () => {
        connections.delete(raw);
        silent.leave(raw);
      });
    },
    greet(stream, raw) {
      sniff(stream, {
        http2: (head) => {
          silent.leave(raw);
          hand(stream, () => http2(stream, head));
        },
        http1: () => {
          silent.leave(raw);
          hand(stream, () => options.onHttp1(stream));
          stream.resume();
        },
      });
    },
    endSilent: () => silent.clear(),
    async endAll() {
      const gone = [...connections].map((raw) => once(raw, 'close'));
      for (const raw of connections) raw.destroy();
      await Promise.all(gone);
    },
  };
}
