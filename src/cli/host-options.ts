/** How programs of the host are reached: from flags, environment and the main file, in this order of precedence. */
import { isAbsolute } from 'node:path';
import {
  defaultHostSettings,
  type HostSettings,
  type HostStrategyName,
  hostStrategies,
  type ProgramSettings,
  programsFromEnvironment,
} from '../backends/exec/host-settings.ts';
import type { HostOptions } from '../config/host.ts';
import type { SettingReader } from './setting-reader.ts';
import type { Shell } from './shell.ts';
import { UsageError } from './usage-error.ts';

/** What flags and `SWITCHBOARD_…` variables say of it. */
export type HostFlags = Partial<Pick<HostSettings, 'strategy' | 'root' | 'pid'>>;

/** `--host-strategy` may name the place too: `chroot:/host`, `loader:/host`, `nsenter:1`, `nsenter:iscsid`. Throws UsageError. */
export function hostFlags(read: SettingReader): HostFlags {
  const text = read.text('host-strategy');
  const root = read.text('host-root');
  if (root !== undefined && !isAbsolute(root)) throw new UsageError(`host-root: "${root}" is not an absolute path`);
  return { ...(text === undefined ? {} : parseStrategy(text)), ...(root === undefined ? {} : { root }) };
}

function parseStrategy(text: string): HostFlags {
  const [, name = '', place] = /^(\w+)(?::(.+))?$/.exec(text) ?? [];
  const strategy = hostStrategies.find((one) => one === name);
  if (strategy === undefined) {
    throw new UsageError(`host-strategy: "${text}" is not one of ${hostStrategies.join(', ')}`);
  }
  if (place === undefined) return { strategy };
  if (strategy === 'nsenter') return { strategy, pid: /^\d+$/.test(place) ? Number(place) : place };
  if (hasRoot(strategy) && isAbsolute(place)) return { strategy, root: place };
  throw new UsageError(`host-strategy: "${text}" is not understood`, 'Such as chroot:/host or nsenter:1.');
}

function hasRoot(strategy: HostStrategyName): boolean {
  return strategy === 'chroot' || strategy === 'loader' || strategy === 'auto';
}

/** `file`: the `host` key of the main file. Values that are not understood in variables of democratic-csi's image are told to `warn`. */
export function hostSettings(
  flags: HostFlags,
  file: HostOptions | undefined,
  env: Shell['env'],
  warn: (message: string) => void,
): HostSettings {
  const { programs, ...common } = withoutUndefined(file ?? {});
  return {
    ...defaultHostSettings,
    ...common,
    ...flags,
    programs: mergedPrograms(programsFromEnvironment(env, warn), programs ?? {}),
  };
}

function mergedPrograms(
  under: Readonly<Record<string, ProgramSettings>>,
  over: Readonly<Record<string, ProgramSettings>>,
): Readonly<Record<string, ProgramSettings>> {
  const names = [...Object.keys(under), ...Object.keys(over)];
  return Object.fromEntries(names.map((name) => [name, { ...under[name], ...withoutUndefined(over[name] ?? {}) }]));
}

function withoutUndefined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
