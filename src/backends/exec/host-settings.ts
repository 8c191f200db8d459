import { systemDirectories } from './search-path.ts';

export const hostStrategies = ['auto', 'direct', 'chroot', 'nsenter', 'loader'] as const;

/**
 * - `direct`: a program of this process's own root, in it.
 * - `chroot`: a program of the host's root directory, in that root.
 * - `nsenter`: a program of another process's mount namespace, in that namespace.
 * - `loader`: a program of the host's in this process's own root, started by the host's dynamic loader; what has to do with daemons and
 *   settings of the host is run in the host's root, which is entered by the host's own `chroot` or `nsenter`. It takes nothing but this process.
 * - `auto`: `direct` if the program is there; else as `loader` does, with this root's own `chroot` or `nsenter` where they are.
 */
export type HostStrategyName = (typeof hostStrategies)[number];

export interface HostSettings {
  readonly strategy: HostStrategyName;
  /** Where the host's root directory is mounted. */
  readonly root: string;
  /** The process whose namespaces `nsenter` enters: its id, or its name, of which the oldest is taken. */
  readonly pid: number | string;
  /** Directories in which programs are looked for. */
  readonly searchPath: readonly string[];
  readonly programs: Readonly<Record<string, ProgramSettings>>;
}

/** What is different for one program. */
export interface ProgramSettings {
  /** Its file, in the root that it runs in. */
  readonly path?: string | undefined;
  readonly strategy?: HostStrategyName | undefined;
  readonly pid?: number | string | undefined;
  /** Put before it: a program that starts it, with that program's arguments. */
  readonly prefix?: readonly string[] | undefined;
}

export const defaultHostSettings: HostSettings = {
  strategy: 'auto',
  root: '/host',
  pid: 1,
  searchPath: systemDirectories,
  programs: {},
};

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What the variables say that democratic-csi's image reads: `ISCSIADM_HOST_STRATEGY` (chroot or nsenter, the latter into the oldest `iscsid`),
 * `ISCSIADM_HOST_PATH`, `USE_HOST_MOUNT_TOOLS=1`. A value that means nothing is told to `warn` and ignored.
 */
export function programsFromEnvironment(
  env: Environment,
  warn: (message: string) => void,
): Readonly<Record<string, ProgramSettings>> {
  const programs: Record<string, ProgramSettings> = {};
  const iscsiadm = { ...iscsiadmStrategy(env.ISCSIADM_HOST_STRATEGY, warn), ...iscsiadmPath(env.ISCSIADM_HOST_PATH) };
  if (Object.keys(iscsiadm).length > 0) programs.iscsiadm = iscsiadm;
  if (/^(1|true|yes|on)$/i.test(env.USE_HOST_MOUNT_TOOLS?.trim() ?? '')) {
    programs.mount = { strategy: 'chroot' };
    programs.umount = { strategy: 'chroot' };
  }
  return programs;
}

function iscsiadmStrategy(value: string | undefined, warn: (message: string) => void): ProgramSettings {
  const text = value?.trim();
  if (!text) return {};
  if (text === 'chroot') return { strategy: 'chroot' };
  if (text === 'nsenter') return { strategy: 'nsenter', pid: 'iscsid' };
  warn(`ISCSIADM_HOST_STRATEGY=${JSON.stringify(text)} is neither chroot nor nsenter; it is ignored`);
  return {};
}

function iscsiadmPath(value: string | undefined): ProgramSettings {
  const path = value?.trim();
  return path ? { path } : {};
}
