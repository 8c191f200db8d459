/** HTTP/2 by hand, for the listener's tests: frames (RFC 9113) and literal headers (RFC 7541) without compression state. */
import type { Duplex } from 'node:stream';

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

export const settings = frame(4, 0, 0);
export const settingsAck = frame(4, 1, 0);
export const goaway = frame(7, 0, 0, Buffer.alloc(8));

export function text(value: string | Buffer, huffman = false): Buffer {
  const bytes = Buffer.from(value);
  if (bytes.length > 126) throw new Error('longer than the tests need');
  return Buffer.concat([Buffer.from([bytes.length | (huffman ? 0x80 : 0)]), bytes]);
}

/** A literal with incremental indexing and a name from the static table. */
export function literal(index: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x40 | index]), value]);
}

/** A literal without indexing and a name of its own. */
export function named(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

/** `/csi/csi.sock` in HPACK's Huffman code, as golang.org/x/net/http2/hpack writes it. */
export const codedPath = Buffer.from('60883304419741c9d7', 'hex');

/** The headers of a gRPC call, with the authority as given. */
export function requestHeaders(authority: Buffer, method = '/test.Test/Echo'): Buffer {
  return Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal(4, text(method)),
    authority,
    named('content-type', 'application/grpc'),
    named('te', 'trailers'),
  ]);
}

/** A gRPC message in a DATA frame that ends the stream. */
export function message(stream: number, body: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(body.length, 1);
  return frame(0, 1, stream, Buffer.concat([prefix, body]));
}

export interface Answer {
  readonly status: 'answered' | 'refused' | 'closed';
  /** All bytes of DATA frames, gRPC prefix included. */
  readonly data: Buffer;
}

/** Reads frames until stream 1 ends, is reset, or the connection goes away. */
export function readAnswer(stream: Duplex, wanted = 1): Promise<Answer> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const data: Buffer[] = [];
    let ended = 0;
    const finish = (status: Answer['status']) => resolve({ status, data: Buffer.concat(data) });
    stream.on('error', () => finish('closed'));
    stream.on('close', () => finish('closed'));
    stream.on('end', () => finish('closed'));
    stream.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
        const length = bytes.readUIntBE(0, 3);
        const [type, flags] = [bytes[3], bytes[4] ?? 0];
        if (type === 0) data.push(bytes.subarray(9, 9 + length));
        bytes = bytes.subarray(9 + length);
        if (type === 3 || type === 7) return finish('refused');
        if ((type === 0 || type === 1) && (flags & 1) !== 0 && ++ended === wanted) return finish('answered');
      }
    });
  });
}
