/** What is said to the process that starts programs, and what it answers: scripts/launcher/starter.h. */
import type { ChildOptions } from './child.ts';

export type StarterAnswer =
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  | { readonly kind: 'failed'; readonly id: number; readonly errno: number }
  | { readonly kind: 'stdout' | 'stderr'; readonly id: number; readonly bytes: Buffer }
  | { readonly kind: 'ended'; readonly id: number; readonly status: number }
  | { readonly kind: 'closed'; readonly id: number };

const longestRequest = 60_000;
const mostStrings = 1000;

/** The request to start something; undefined when it is too large for one. */
export function startRequest(id: number, { file, args, argv0, env }: ChildOptions): Buffer | undefined {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const strings = [file, argv0 ?? file, ...args, ...variables];
  // node:child_process tells of a NUL what is wrong with it.
  if (strings.length > mostStrings || strings.some((text) => text.includes('\0'))) return undefined;
  const text = Buffer.from(`${strings.join('\0')}\0`);
  return text.length > longestRequest ? undefined : request(id, args.length + 1, variables.length, text);
}

/** Nobody wants the output of what was started with this id any more. */
export const forgetRequest = (id: number): Buffer => request(id, 0, 0, Buffer.alloc(0));

function request(id: number, args: number, variables: number, text: Buffer): Buffer {
  const header = Buffer.alloc(16);
  for (const [index, number] of [12 + text.length, id, args, variables].entries())
    header.writeUInt32LE(number, index * 4);
  return Buffer.concat([header, text]);
}

/** Takes what comes, in whatever pieces, and hands on whole answers. */
export function answerReader(take: (answer: StarterAnswer) => void): (chunk: Buffer) => void {
  let held: Buffer | undefined;
  return (chunk) => {
    const data = held ? Buffer.concat([held, chunk]) : chunk;
    let at = 0;
    while (data.length - at >= 4 && data.length - at >= 4 + data.readUInt32LE(at)) {
      const end = at + 4 + data.readUInt32LE(at);
      const answer = answerIn(data.subarray(at + 4, end));
      if (answer) take(answer);
      at = end;
    }
    held = at === data.length ? undefined : data.subarray(at);
  };
}

function answerIn(message: Buffer): StarterAnswer | undefined {
  const id = message.readUInt32LE(0);
  const bytes = message.subarray(8);
  const number = bytes.length >= 4 ? bytes.readUInt32LE(0) : 0;
  switch (message.readUInt32LE(4)) {
    case 1:
      return { kind: 'started', id, pid: number };
    case 2:
      return { kind: 'failed', id, errno: number };
    case 3:
      return { kind: 'stdout', id, bytes };
    case 4:
      return { kind: 'stderr', id, bytes };
    case 5:
      return { kind: 'ended', id, status: number };
    case 6:
      return { kind: 'closed', id };
    default:
      return undefined;
  }
}
