/**
 * What an HTTP/2 client sends, frame by frame (RFC 9113, section 4), mended on the way to the HTTP/2 implementation. Bytes pass as they come,
 * without a copy, except header blocks: those are held until they are complete.
 */
import { mendAuthority } from './authority.ts';

/** Everything a client may send before its first frame: RFC 9113, section 3.4. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

const headerBytes = 9;
/** SETTINGS_MAX_FRAME_SIZE when a server announces none. */
const largestFrame = 16_384;
/** Of one request's header block with its frame headers. Twice what is accepted behind. */
const largestBlock = 131_072;

const HEADERS = 0x1;
const GOAWAY = 0x7;
const CONTINUATION = 0x9;
const END_HEADERS = 0x4;
const PADDED = 0x8;
const PRIORITY = 0x20;

/** Takes bytes as they arrive and hands on those that may pass. Throws for what no well-behaved client sends; the connection must then end. */
export type FrameFilter = (chunk: Buffer, pass: (bytes: Buffer) => void) => void;

export interface FrameFilterOptions {
  /** Removes GOAWAY frames: for an implementation that fails on them. A client that sends one closes the connection anyway. */
  readonly dropGoaway: boolean;
}

/** A filter for one connection, from its first byte. */
export function createFrameFilter({ dropGoaway }: FrameFilterOptions): FrameFilter {
  let passing = preface.length;
  let dropping = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let wantedBytes = 0;

  function join(chunk: Buffer): Buffer | undefined {
    if (heldBytes === 0) return chunk;
    held.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes < wantedBytes) return undefined;
    const joined = Buffer.concat(held, heldBytes);
    held = [];
    heldBytes = 0;
    return joined;
  }

  return (chunk, pass) => {
    const data = join(chunk);
    if (!data) return;
    let from = 0;
    let at = 0;
    const passUpTo = (end: number) => {
      if (end > from) pass(from === 0 && end === data.length ? data : data.subarray(from, end));
    };
    while (at < data.length) {
      if (passing > 0) {
        const step = Math.min(passing, data.length - at);
        passing -= step;
        at += step;
        continue;
      }
      if (dropping > 0) {
        const step = Math.min(dropping, data.length - at);
        dropping -= step;
        at += step;
        from = at;
        continue;
      }
      const wanted = wantedFor(data, at);
      if (wanted > data.length - at) {
        passUpTo(at);
        from = data.length;
        held = [data.subarray(at)];
        heldBytes = data.length - at;
        wantedBytes = wanted;
        return;
      }
      const type = data[at + 3];
      if (type === HEADERS) {
        mendBlock(data.subarray(at, at + wanted));
        at += wanted;
      } else if (type === GOAWAY && dropGoaway) {
        passUpTo(at);
        dropping = headerBytes + frameLength(data, at);
      } else {
        at += headerBytes;
        passing = frameLength(data, at - headerBytes);
      }
    }
    passUpTo(data.length);
  };
}

/** How many bytes from `at` are needed to go on: a frame header, or for a request's headers all frames of the block. */
function wantedFor(data: Buffer, at: number): number {
  let end = at + headerBytes;
  if (end > data.length) return headerBytes;
  if (data[at + 3] !== HEADERS) return headerBytes;
  let frame = at;
  for (;;) {
    end = frame + headerBytes + frameLength(data, frame);
    if (end - at > largestBlock) throw new Error(`a header block of more than ${largestBlock} bytes`);
    if ((data[frame + 4]! & END_HEADERS) !== 0) return end - at;
    if (end + headerBytes > data.length) return end + headerBytes - at;
    // Anything else in the middle of a block is an error that the implementation behind reports.
    if (data[end + 3] !== CONTINUATION) return end - at;
    frame = end;
  }
}

function frameLength(data: Buffer, at: number): number {
  const length = data.readUIntBE(at, 3);
  if (length > largestFrame) throw new Error(`a frame of ${length} bytes, where ${largestFrame} are allowed`);
  return length;
}

/** `frames`: a HEADERS frame and the CONTINUATION frames that follow it. */
function mendBlock(frames: Buffer): void {
  const fragments: Buffer[] = [];
  for (let at = 0; at < frames.length; at += headerBytes + frameLength(frames, at))
    fragments.push(fragment(frames, at));
  if (fragments.length === 1) {
    mendAuthority(fragments[0]!);
    return;
  }
  const block = Buffer.concat(fragments);
  if (!mendAuthority(block)) return;
  let copied = 0;
  for (const one of fragments) copied += block.copy(one, 0, copied, copied + one.length);
}

/** The part of the header block in the frame at `at`, without padding and priority: RFC 9113, section 6.2. */
function fragment(frames: Buffer, at: number): Buffer {
  let start = at + headerBytes;
  let end = start + frameLength(frames, at);
  const flags = frames[at + 4]!;
  if (frames[at + 3] === HEADERS) {
    if ((flags & PADDED) !== 0) end -= frames[start++] ?? 0;
    if ((flags & PRIORITY) !== 0) start += 5;
  }
  return frames.subarray(Math.min(start, frames.length), Math.max(start, end));
}
