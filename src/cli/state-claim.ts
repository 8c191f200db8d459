/**
 * Keeps two servers from working with one state directory when they would do the same work: what a node or Docker's plugin remembers is only right
 * while one process at a time acts on it.
 *
 * Who serves, listens on a socket in the directory, which is his as long as he lives, whatever ends him and in whatever container he was. Each
 * puts a socket of a name of its own there, and then looks at those of the others: of two that begin at once, at least one sees the other. Names are
 * never used again, so that a socket that nobody answers on can be removed by anybody.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import * as v from 'valibot';
import { asCallError, CallError, errnoOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { within } from '../core/within.ts';
import { mayHang } from '../node/file-system-kind.ts';
import { readMountTable } from '../node/mount-table.ts';
import { thisOwner } from '../node/owner.ts';

export interface ClaimOptions {
  readonly stateDirectory: string;
  /** What is claimed: words that may be file names. Others claim something else beside it. */
  readonly claims: readonly string[];
  /** What is told to others: where this process listens. */
  readonly endpoints: readonly string[];
  readonly log: Logger;
  /** Milliseconds to wait for a server that does not serve: it is stopping, or does not answer. Default: a quarter of a minute. */
  readonly patienceMs?: number | undefined;
}

export interface StateClaim {
  /** From now on, whoever wants to begin fails. */
  serving(): void;
  /** From now on, whoever wants to begin may wait for the end of this process. */
  stopping(): void;
  release(): Promise<void>;
}

const phase = v.picklist(['starting', 'serving', 'stopping']);
const answer = v.object({ owner: v.string(), endpoints: v.array(v.string()), phase });
type Answer = v.InferOutput<typeof answer>;
/** `silent`: somebody is there, but stopped or busy. */
type Other = Answer | 'silent';

/** Milliseconds in which a process that lives answers. */
const answerMs = 3000;

/** The longest path of a socket, in bytes: unix(7). */
const longestPath = 107;

/**
 * Claims the directory for this process. Throws FAILED_PRECONDITION, naming it, while another process has claimed the same. Where nothing can be
 * written, nothing is remembered either, and nothing claimed: that is told to `log`.
 */
export async function claimState(options: ClaimOptions): Promise<StateClaim> {
  const { stateDirectory, log, patienceMs = 15_000 } = options;
  const folder = join(stateDirectory, 'servers');
  const giveUp = Date.now() + patienceMs;
  for (;;) {
    const claim = await announce(folder, options).catch((error: unknown) => {
      const { message } = asCallError(error);
      log.warn('whether another server uses the same state directory cannot be told', {
        stateDirectory,
        error: message,
      });
      return unclaimed;
    });
    const other = await findOther(claim);
    if (other === undefined) return claim;
    await claim.release();
    if (Date.now() > giveUp || isServing(other)) throw inUse(stateDirectory, other);
    // Of two that begin at once, each sees the other: then the one who pauses less is the one.
    await setTimeout(100 + Math.random() * 200);
  }
}

interface Announced extends StateClaim {
  /** Paths of the other sockets for the same. */
  readonly others: readonly string[];
}

const unclaimed: Announced = { others: [], serving: () => {}, stopping: () => {}, release: async () => {} };

const isServing = (other: Other) => other !== 'silent' && other.phase === 'serving';

async function announce(folder: string, { claims, endpoints }: ClaimOptions): Promise<Announced> {
  // A directory that hangs is not looked at a second time by anybody here.
  if (mayHang((await readMountTable()).covering(folder))) throw new Error(`${folder} is on network storage`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const mine = claims.map((claim) => `${claim}-${randomUUID().slice(0, 13)}`);
  const longest = Math.max(...mine.map((name) => Buffer.byteLength(join(folder, `.${name}`))));
  const handle = longest > longestPath ? await open(folder, 'r') : undefined;
  const pathOf = (name: string) => join(handle ? `/proc/self/fd/${handle.fd}` : folder, name);
  const state: Answer & { phase: Answer['phase'] } = {
    owner: await thisOwner(),
    endpoints: [...endpoints],
    phase: 'starting',
  };
  const servers: Server[] = [];
  const release = async () => {
    await Promise.all(servers.map(close));
    for (const name of mine) await unlink(pathOf(name)).catch(() => {});
    await handle?.close();
  };
  try {
    for (const name of mine) {
      // Others take a socket that is not listened on for that of a dead process.
      servers.push(await listen(pathOf(`.${name}`), () => state));
      await rename(pathOf(`.${name}`), pathOf(name));
    }
    const names = (await readdir(folder)).filter((name) => !mine.includes(name));
    const others = names.filter((name) => claims.some((claim) => name.slice(0, -14) === claim)).map(pathOf);
    const enter = (next: Answer['phase']) => () => {
      state.phase = next;
    };
    return { others, serving: enter('serving'), stopping: enter('stopping'), release };
  } catch (error) {
    await release();
    throw error;
  }
}

async function listen(path: string, state: () => Answer): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(JSON.stringify(state()));
  });
  server.listen({ path });
  await once(server, 'listening');
  server.unref();
  return server;
}

async function close(server: Server): Promise<void> {
  await new Promise((resolve) => server.close(resolve));
}

/** Who has claimed the same and lives. Sockets of the dead are removed. */
async function findOther({ others }: Announced): Promise<Other | undefined> {
  const answers = await Promise.all(others.map(ask));
  const found = answers.filter((one) => one !== undefined);
  return found.find(isServing) ?? found[0];
}

async function ask(path: string): Promise<Other | undefined> {
  const socket = connect(path);
  try {
    return (await within(answerMs, readAnswer(socket))) ?? 'silent';
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ECONNREFUSED') await unlink(path).catch(() => {});
    return errno === 'ECONNREFUSED' || errno === 'ENOENT' ? undefined : 'silent';
  } finally {
    socket.destroy();
  }
}

async function readAnswer(socket: Socket): Promise<Answer> {
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return v.parse(answer, JSON.parse(text));
}

function inUse(stateDirectory: string, other: Other): CallError {
  return new CallError(
    'FAILED_PRECONDITION',
    `another server of the same name works with the state directory ${stateDirectory}: ${describe(other)}; stop it, or give this one a directory ` +
      'of its own by SWITCHBOARD_STATE_DIR',
  );
}

function describe(other: Other): string {
  if (other === 'silent') return 'a process that does not answer';
  const [, , pid] = other.owner.split('.');
  return `process ${pid} (as its own container counts, if it is in one), which is ${other.phase} ${other.endpoints.join(', ')}`;
}
