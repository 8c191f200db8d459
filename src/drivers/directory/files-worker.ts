/** The child's side of files-child.ts: does what it is told with files until its input ends. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type Files, localFiles } from './files.ts';
import { type FilesReply, type FilesRequest, lineReader, toWire } from './files-protocol.ts';
import { removeTree } from './remove-tree.ts';

/** How often it says that it still works, in milliseconds. */
const beatMs = 1000;

/** Resolves when the input ends: then nobody is there any more to work for. */
export function serveFiles(input: Readable, output: Writable): Promise<void> {
  const running = new Map<number, AbortController>();
  const reply = (message: FilesReply) => output.write(`${JSON.stringify(message)}\n`);

  async function work(request: Exclude<FilesRequest, { stop: number }>): Promise<void> {
    const { id } = request;
    const stop = new AbortController();
    running.set(id, stop);
    let beaten = performance.now();
    const beat = () => {
      if (performance.now() - beaten < beatMs) return;
      beaten = performance.now();
      reply({ id, goesOn: true });
    };
    try {
      const is = await carryOut(request, stop.signal, beat);
      reply({ id, is: is instanceof Date ? is.getTime() : is });
    } catch (error) {
      reply({ id, failed: toWire(error) });
    } finally {
      running.delete(id);
    }
  }

  return new Promise((resolve) => {
    const decoder = new StringDecoder('utf8');
    const read = lineReader(decoder, (line) => {
      const request = JSON.parse(line) as FilesRequest;
      if ('stop' in request) running.get(request.stop)?.abort();
      else void work(request);
    });
    input.on('data', read);
    input.once('end', resolve);
    input.once('error', () => resolve());
  });
}

async function carryOut(
  request: Exclude<FilesRequest, { stop: number }>,
  signal: AbortSignal,
  beat: () => void,
): Promise<unknown> {
  if (request.do === 'removeTree') {
    const [path, shelter] = request.with as Parameters<Files['removeTree']>;
    return await removeTree(path, shelter, signal, beat);
  }
  if (request.do === 'hold') return await hold(String(request.with[0]));
  if (!Object.hasOwn(localFiles, request.do)) throw new Error(`there is no ${request.do}`);
  const operation = localFiles[request.do] as (...args: readonly unknown[]) => Promise<unknown>;
  return await operation(...request.with);
}

let held: FileHandle | undefined;

/** Keeps this folder open from now on, and lets go of the one before. */
async function hold(path: string): Promise<void> {
  const next = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  const before = held;
  held = next;
  await before?.close();
}
