/** Two protocols behind one door: the first bytes of a connection tell HTTP/2 from everything else. */
import type { Duplex } from 'node:stream';
import { preface } from './frames.ts';

/** `PRI * HTTP/2.0`: no HTTP/1 request begins so (RFC 9113, section 3.4). */
const sign = preface.subarray(0, 14);

export interface Sniffed {
  /** `head` is what was read; it begins with the preface. */
  http2(head: Buffer): void;
  /** What was read is put back into the socket. */
  http1(): void;
}

/**
 * Reads until it is clear which protocol the client speaks, and tells once. A client that leaves before is never told about. The socket is paused
 * then, and nothing listens to its data. Time limits are the caller's.
 */
export function sniff(socket: Duplex, sniffed: Sniffed): void {
  let head: Buffer = Buffer.alloc(0);

  function stop(): void {
    socket.off('data', take);
    socket.off('end', gone);
    socket.pause();
  }
  function gone(): void {
    stop();
    socket.destroy();
  }
  function take(chunk: Buffer): void {
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    const known = Math.min(head.length, sign.length);
    const matches = head.compare(sign, 0, known, 0, known) === 0;
    if (matches && known < sign.length) return;
    stop();
    if (matches) {
      sniffed.http2(head);
    } else {
      socket.unshift(head);
      sniffed.http1();
    }
  }
  socket.on('data', take);
  socket.on('end', gone);
  socket.resume();
}
