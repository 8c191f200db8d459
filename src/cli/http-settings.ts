/** What the HTTP door was asked to be, from flags and environment. */
import type { SettingReader } from './setting-reader.ts';
import { UsageError } from './usage-error.ts';

export interface HttpSettings {
  readonly endpoint: string;
  /** Other hosts may read it, unencrypted. */
  readonly allowRemote: boolean;
}

/** Undefined: there is no such door. */
export function httpSettings(read: SettingReader): HttpSettings | undefined {
  const endpoint = read.text('http-endpoint');
  const allowRemote = read.yes('http-allow-remote');
  if (endpoint !== undefined) return { endpoint, allowRemote };
  if (!allowRemote) return undefined;
  throw new UsageError('http-allow-remote needs http-endpoint', 'Such as --http-endpoint tcp://0.0.0.0:9808.');
}
