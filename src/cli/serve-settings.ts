/** What `serve` was asked to do, from flags, environment and the machine. Pure: it reads nothing else. */
import { join, resolve } from 'node:path';
import { type LogLevel, logLevels } from '../core/logger.ts';
import { parseSize } from '../core/sizes.ts';
import { type SwarmSetting, swarmSettings } from '../frontends/csi/swarm.ts';
import type { TlsFiles } from '../frontends/listener/tls-files.ts';
import { type DockerDoorSettings, dockerSettings } from './docker-settings.ts';
import { type HostFlags, hostFlags } from './host-options.ts';
import { type HttpSettings, httpSettings } from './http-settings.ts';
import { type Flags, type SettingReader, settingReader } from './setting-reader.ts';
import type { Shell } from './shell.ts';
import { minorOfSpecVersion, newestSpecVersion } from './spec-version.ts';
import { type Account, stateDirectory, systemConfigPath, systemSocketPath } from './state-directory.ts';
import { CommandError, UsageError } from './usage-error.ts';

/** What the settings depend on besides flags and variables. */
export interface Machine extends Account {
  readonly hostName: string;
  readonly pid: number;
  readonly outIsTerminal: boolean;
  /** Whether {@link systemConfigPath} is there. */
  readonly hasSystemConfig: boolean;
}

export interface ServeSettings {
  /** Undefined: the embedded default, kept in {@link stateDirectory}. */
  readonly configPath: string | undefined;
  readonly stateDirectory: string;
  readonly logLevel: LogLevel;
  readonly logFormat: 'json' | 'text';
  readonly csiName: string;
  /** Minor of CSI 1.x. */
  readonly specMinor: number;
  readonly modes: { readonly controller: boolean; readonly node: boolean };
  readonly endpoints: readonly string[];
  readonly socketMode: number;
  readonly tls: TlsFiles | undefined;
  readonly allowInsecureTcp: boolean;
  /** Metrics, health and the status page. */
  readonly http: HttpSettings | undefined;
  readonly stopTimeoutMs: number;
  readonly nodeName: string;
  readonly hostName: string;
  readonly docker: DockerDoorSettings;
  readonly swarm: SwarmSetting;
  /** The log goes there too. */
  readonly logFile: { readonly path: string; readonly maxBytes: number } | undefined;
  /** How programs of the host are reached, as far as the command line and the environment say. */
  readonly host: HostFlags;
}

export function serveSettings(flags: Flags, env: Shell['env'], machine: Machine): ServeSettings {
  const read = settingReader(flags, env);
  const explicitConfig = read.text('driver-config-file') ?? read.text('config');
  const configPath = explicitConfig ?? (machine.hasSystemConfig ? systemConfigPath : undefined);
  return {
    configPath,
    stateDirectory: stateDirectory(env, machine),
    logLevel: oneOf('log-level', read.text('log-level'), logLevels) ?? 'info',
    logFormat:
      oneOf('log-format', read.text('log-format'), ['json', 'text'] as const) ??
      (machine.outIsTerminal && env.NODE_ENV !== 'production' ? 'text' : 'json'),
    csiName: nonEmpty('csi-name', read.text('csi-name')) ?? 'org.switchboard.csi',
    specMinor: minorOfSpecVersion(env.CSI_VERSION || read.text('csi-version') || newestSpecVersion),
    modes: modes(read.list('csi-mode')),
    endpoints: endpoints(read, env, machine, { configPath, explicitConfig }),
    socketMode: socketMode(read.text('server-socket-permissions-mode') ?? '0600'),
    tls: tlsSettings(read),
    allowInsecureTcp: read.yes('allow-insecure-tcp'),
    http: httpSettings(read),
    stopTimeoutMs: (read.integer('stop-timeout', 0, 86_400) ?? 30) * 1000,
    nodeName: env.CSI_NODE_ID || machine.hostName,
    hostName: machine.hostName,
    docker: dockerSettings(read, stateDirectory(env, machine)),
    swarm: oneOf('swarm', read.text('swarm'), swarmSettings) ?? 'auto',
    logFile: logFile(read),
    host: hostFlags(read),
  };
}

function endpoints(
  read: SettingReader,
  env: Shell['env'],
  machine: Machine,
  given: { configPath: string | undefined; explicitConfig: string | undefined },
): readonly string[] {
  const asked = [...read.list('endpoint'), ...socketEndpoint(read), ...tcpEndpoint(read)];
  if (asked.length > 0) return asked;
  // Sockets that the service manager opened for this very process: sd_listen_fds(3).
  const inherits = env.LISTEN_PID === String(machine.pid) && Number(env.LISTEN_FDS) > 0;
  const handed = [...(env.CSI_ENDPOINT ? [env.CSI_ENDPOINT] : []), ...(inherits ? ['systemd'] : [])];
  if (handed.length > 0) return handed;
  if (given.explicitConfig !== undefined) {
    throw new CommandError(
      'must listen on tcp and/or unix socket',
      'Add --server-socket /run/switchboard/csi.sock, or --server-address with --server-port, or set CSI_ENDPOINT.',
    );
  }
  if (given.configPath !== undefined && machine.isRoot) return [`unix://${systemSocketPath}`];
  return [`unix://${join(stateDirectory(env, machine), 'csi.sock')}`];
}

/** A bare path, which may be relative, or `unix:///path`. */
function socketEndpoint(read: SettingReader): readonly string[] {
  const socket = read.text('server-socket');
  if (socket === undefined) return [];
  return [socket.startsWith('unix:') ? socket : `unix:${socket}`];
}

function tcpEndpoint(read: SettingReader): readonly string[] {
  const address = read.text('server-address');
  const port = read.integer('server-port', 0, 65_535);
  // One without the other opens nothing: existing deployments rely on it.
  if (address === undefined || port === undefined) return [];
  return [`tcp://${address.includes(':') && !address.startsWith('[') ? `[${address}]` : address}:${port}`];
}

function modes(names: readonly string[]): ServeSettings['modes'] {
  for (const name of names) oneOf('csi-mode', name, ['controller', 'node'] as const);
  if (names.length === 0) return { controller: true, node: true };
  return { controller: names.includes('controller'), node: names.includes('node') };
}

function socketMode(text: string): number {
  if (/^(0o?)?[0-7]{3,4}$/.test(text)) return Number.parseInt(text.replace('o', ''), 8);
  throw new UsageError(`server-socket-permissions-mode: "${text}" is not an octal mode`, 'Such as 0600 or 0660.');
}

function tlsSettings(read: SettingReader): TlsFiles | undefined {
  const parts = ['server-tls-cert', 'server-tls-key', 'server-tls-client-ca'] as const;
  const [cert, key, clientCa] = parts.map((name) => read.text(name));
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined;
  if (cert !== undefined && key !== undefined && clientCa !== undefined) {
    return { cert, key, clientCa };
  }
  const missing = parts.filter((name) => read.text(name) === undefined).map((name) => `--${name}`);
  throw new UsageError(
    `TLS needs ${missing.join(' and ')} too`,
    'Clients are known by their certificate, so the authority that signs them is part of it.',
  );
}

function logFile(read: SettingReader): ServeSettings['logFile'] {
  const path = read.text('log-file');
  const size = read.text('log-file-size') ?? '10Mi';
  return path === undefined ? undefined : { path: resolve(path), maxBytes: parseSize(size) };
}

function nonEmpty(name: string, value: string | undefined): string | undefined {
  if (value !== undefined && value.trim() === '') throw new UsageError(`${name} must not be empty`);
  return value;
}

function oneOf<T extends string>(name: string, value: string | undefined, choices: readonly T[]): T | undefined {
  if (value === undefined) return undefined;
  const choice = choices.find((one) => one === value);
  if (choice === undefined) throw new UsageError(`${name}: "${value}" is not one of ${choices.join(', ')}`);
  return choice;
}
