/** One SSH connection, logged in. */
import { readFile } from 'node:fs/promises';
import type { Client, ClientChannel, ConnectConfig } from 'ssh2';
import { CallError, errnoOf, oneLine } from '../../core/errors.ts';
import { prepareHostKeyCheck } from './host-key.ts';
import { loadSsh } from './library.ts';
import type { SshSettings } from './settings.ts';

/** The connection lives, but the server does not start another command on it. */
export class ChannelRefused extends CallError {}

export interface SshClient {
  /** Starts a command. Throws {@link ChannelRefused}, or what the connection ended with. */
  exec(command: string): Promise<ClientChannel>;
  /** Settles when the connection is over, with the reason. */
  readonly over: Promise<CallError>;
  close(): void;
}

/** Connects and logs in. Throws UNAVAILABLE, UNAUTHENTICATED, or FAILED_PRECONDITION for a server that is not the known one. */
export async function connectSsh(settings: SshSettings): Promise<SshClient> {
  const { host, port, username } = settings;
  const where = `${username}@${host}:${port}`;
  const check = await prepareHostKeyCheck(settings.hostKey, host, port);
  const login = await readLogin(settings);
  const { Client } = await loadSsh();
  const client: Client = new Client();
  let refusal: string | undefined;

  const over = new Promise<CallError>((resolve) => {
    let last: CallError | undefined;
    // An error without a listener would end the process; it may come at any time, also after the end.
    client.on('error', (error) => {
      last ??= refusal
        ? new CallError('FAILED_PRECONDITION', `${where} is not trusted: ${refusal}`)
        : connectionError(where, error);
    });
    client.on('close', () => resolve(last ?? new CallError('UNAVAILABLE', `${where} ended the SSH connection`)));
  });
  const ready = new Promise<void>((resolve) => client.once('ready', () => resolve()));
  client.on('keyboard-interactive', (_name, _text, _language, prompts, answer) =>
    answer(prompts.map(() => login.password ?? '')),
  );

  const config: ConnectConfig = {
    host,
    port,
    username,
    readyTimeout: settings.connectMs,
    keepaliveInterval: settings.keepaliveMs,
    keepaliveCountMax: 3,
    tryKeyboard: login.password !== undefined,
    hostVerifier: (key: Buffer) => {
      refusal = check.refusal(key);
      return refusal === undefined;
    },
    ...login,
    ...(settings.agent !== undefined && { agent: settings.agent }),
    ...(check.algorithms && { algorithms: { serverHostKey: check.algorithms as never } }),
  };
  try {
    client.connect(config);
  } catch (error) {
    // A key that cannot be read, or a wrong passphrase: thrown at once.
    throw new CallError('FAILED_PRECONDITION', `${where}: ${oneLine(String((error as Error).message))}`, {
      cause: error,
    });
  }
  const failed = await Promise.race([ready, over]);
  if (failed) throw failed;
  client.setNoDelay(true);

  return {
    exec: (command) =>
      new Promise((resolve, reject) => {
        const refuse = (error: Error) =>
          reject(new ChannelRefused('UNAVAILABLE', `${where} does not start a command: ${oneLine(error.message)}`));
        try {
          client.exec(command, (error, channel) => (error ? refuse(error) : resolve(channel)));
          // An answer does not come over a connection that is gone.
          void over.then(reject);
        } catch (error) {
          refuse(error as Error);
        }
      }),
    over,
    close: () => void client.end(),
  };
}

type Login = Pick<ConnectConfig, 'password' | 'privateKey' | 'passphrase'>;

/** What the settings have of password, key and passphrase, or else the files that they name. */
async function readLogin({ password, privateKey, passphrase, files }: SshSettings): Promise<Login> {
  const values = { password, privateKey, passphrase };
  const login: Login = {};
  for (const key of ['password', 'privateKey', 'passphrase'] as const) {
    const value = values[key] ?? (await readSecretFile(files?.[key]));
    if (value !== undefined) login[key] = value;
  }
  return login;
}

/** Without the line end that editors add. */
async function readSecretFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '');
  } catch (error) {
    throw new CallError('FAILED_PRECONDITION', `${path} cannot be read: ${errnoOf(error) ?? 'no text'}`, {
      cause: error,
    });
  }
}

/** ssh2 tells by `level` where it failed. */
function connectionError(where: string, error: Error & { readonly level?: string }): CallError {
  const said = oneLine(error.message);
  if (error.level === 'client-authentication') {
    return new CallError('UNAUTHENTICATED', `${where} refuses the login: ${said}`, { cause: error });
  }
  return new CallError('UNAVAILABLE', `${where} cannot be reached over SSH: ${said}`, { cause: error });
}
