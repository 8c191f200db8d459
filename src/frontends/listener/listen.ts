/** The front doors: opens every endpoint and hands each connection to the protocol that its first bytes ask for. */
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { asCallError, CallError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { Endpoint, InheritedEndpoint } from './endpoints.ts';
import { type InheritedSocket, openInherited, takeInheritedSockets } from './inherited.ts';
import { createReception } from './reception.ts';
import { isLoopback, openTcp, type PlaintextPolicy, type PlaintextWords, refuseOpenPlaintext } from './tcp.ts';
import { createTlsFront } from './tls.ts';
import type { TlsFiles } from './tls-files.ts';
import { openUnixSocket } from './unix-socket.ts';

export interface ListenOptions {
  readonly endpoints: readonly Endpoint[];
  /** Permission bits of unix socket files. Default: 0600. */
  readonly socketMode?: number | undefined;
  /** Encrypts all of TCP, and lets in only clients with a certificate. */
  readonly tls?: TlsFiles | undefined;
  /** Lets plaintext TCP be reached from other hosts. Default: false. */
  readonly allowInsecureTcp?: boolean | undefined;
  /** How that is refused or warned of. Default: as for a door that takes commands. */
  readonly plaintextWords?: PlaintextWords | undefined;
  readonly log: Logger;
  /** Gets a connection whose client speaks HTTP/2, from the preface on. */
  readonly onHttp2: (stream: Duplex) => void;
  /** Gets every other connection, from its first byte on. Data flows when this returns: listen to it before. */
  readonly onHttp1: (socket: Duplex) => void;
  /** The time in which a client must begin to speak, TLS handshake included. Milliseconds; default 10 s. */
  readonly firstBytesLimitMs?: number | undefined;
}

export interface Listener {
  /** What is listened on, as clients would write it; for an inherited unix socket `systemd:` and its name. */
  readonly addresses: readonly string[];
  /** No connection comes in any more and socket files are gone; connections in use go on. */
  stopAccepting(): Promise<void>;
  /** Ends what is left of them too. */
  close(): Promise<void>;
}

interface Door {
  readonly address: string;
  stop(): Promise<void>;
}

/** Taken once a process: several listeners may each serve one of them. */
const handedOver = lazily(takeInheritedSockets);

/** Opens all endpoints or none. Throws a CallError that names the endpoint that could not be opened. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { log, endpoints, tls, socketMode = 0o600, allowInsecureTcp = false, firstBytesLimitMs = 10_000 } = options;
  if (endpoints.length === 0) throw new CallError('INVALID_ARGUMENT', 'there is no endpoint to listen on');
  const reception = createReception({ log, firstBytesLimitMs, onHttp2: options.onHttp2, onHttp1: options.onHttp1 });
  const front = tls && (await createTlsFront(tls, log, reception.greet));
  const policy: PlaintextPolicy = {
    encrypted: front !== undefined,
    allowInsecureTcp,
    log,
    words: options.plaintextWords,
  };
  const plain = (raw: Socket) => reception.greet(raw, raw);
  const overTcp = front ? front.accept : plain;

  function newServer(accept: (raw: Socket) => void): Server {
    return createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true, keepAlive: true }, (raw) => {
      reception.enter(raw);
      accept(raw);
    });
  }

  async function open(endpoint: Exclude<Endpoint, InheritedEndpoint>): Promise<Door> {
    if (endpoint.kind === 'unix') {
      const { path } = endpoint;
      const server = newServer(plain);
      const stop = await closingOnFailure(server, () => openUnixSocket(server, { path, mode: socketMode, log }));
      return door(server, `unix://${path}`, stop);
    }
    const server = newServer(overTcp);
    await closingOnFailure(server, () => openTcp(server, endpoint, policy));
    return door(server, tcpAddress(server) ?? endpoint.text);
  }

  async function adopt(socket: InheritedSocket): Promise<Door> {
    const server = newServer((raw) => (tcpAddress(server) === undefined ? plain : overTcp)(raw));
    await closingOnFailure(server, async () => {
      await openInherited(server, socket);
      const address = server.address();
      if (address === null || typeof address === 'string') return;
      refuseOpenPlaintext(isLoopback(address.address), `${tcpAddress(server)}, handed over by systemd,`, policy);
    });
    return door(server, tcpAddress(server) ?? `systemd:${socket.name || socket.fd}`);
  }

  function door(server: Server, address: string, stop: () => Promise<void> = async () => void server.close()): Door {
    server.on('error', (error) => log.warn(`${address}: ${error.message}`));
    return { address, stop };
  }

  const doors: Door[] = [];
  async function stopAccepting(): Promise<void> {
    await Promise.all(doors.splice(0).map((one) => one.stop()));
    reception.endSilent();
  }
  async function close(): Promise<void> {
    await stopAccepting();
    await reception.endAll();
  }
  for (const endpoint of endpoints) {
    try {
      if (endpoint.kind !== 'inherited') doors.push(await open(endpoint));
      else for (const socket of chosen(endpoint, handedOver())) doors.push(await adopt(socket));
    } catch (error) {
      await close();
      const { code, message } = asCallError(error);
      throw new CallError(code, `cannot listen on ${endpoint.text}: ${message}`, { cause: error });
    }
  }
  const addresses = doors.map(({ address }) => address);
  log.verbose('listening', { addresses });
  return { addresses, stopAccepting, close };
}

/** The inherited sockets that an endpoint means. Throws FAILED_PRECONDITION when there is none. */
function chosen(endpoint: InheritedEndpoint, handedOver: readonly InheritedSocket[]): readonly InheritedSocket[] {
  if (handedOver.length === 0) {
    throw new CallError(
      'FAILED_PRECONDITION',
      'no socket was handed over: start the service by its systemd socket unit',
    );
  }
  const sockets = handedOver.filter(({ name }) => endpoint.name === undefined || name === endpoint.name);
  if (sockets.length > 0) return sockets;
  const names = handedOver.map(({ name }) => name || '(unnamed)').join(', ');
  throw new CallError('FAILED_PRECONDITION', `no socket of that name was handed over, only ${names}`);
}

async function closingOnFailure<T>(server: Server, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (server.listening) server.close();
    throw error;
  }
}

/** `tcp://host:port` as bound, or undefined for a server on a unix socket. */
function tcpAddress(server: Server): string | undefined {
  const address = server.address();
  if (address === null || typeof address === 'string') return undefined;
  return `tcp://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}

function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
