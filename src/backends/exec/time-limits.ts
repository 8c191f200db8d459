/** How long the host's programs may take, from the `*_DEFAULT_TIMEOUT` variables. This is the only place that reads them. */

/** Milliseconds per kind of program. */
export interface TimeLimits {
  /** mount, umount and everything else that touches a mounted file system. */
  readonly mount: number;
  readonly iscsi: number;
  readonly nvmeof: number;
  /** mkfs, fsck, growing: these may have to write to the whole device. */
  readonly filesystem: number;
  readonly restic: number;
  readonly kopia: number;
}

export const defaultTimeLimits: TimeLimits = {
  mount: 30_000,
  iscsi: 30_000,
  nvmeof: 30_000,
  filesystem: 600_000,
  restic: 90_000,
  kopia: 90_000,
};

/** The longest delay that a timer takes. */
const longest = 2 ** 31 - 1;

/** Reads `MOUNT_DEFAULT_TIMEOUT` and its siblings (milliseconds). A value that is not a positive whole number is told to `warn` and ignored. */
export function readTimeLimits(
  env: Readonly<Record<string, string | undefined>>,
  warn: (message: string) => void,
): TimeLimits {
  const read = (kind: keyof TimeLimits): number => {
    const name = `${kind.toUpperCase()}_DEFAULT_TIMEOUT`;
    const text = env[name]?.trim();
    if (text === undefined || text === '') return defaultTimeLimits[kind];
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value > 0 && value <= longest) return value;
    warn(`${name}=${JSON.stringify(text)} is not a number of milliseconds; ${defaultTimeLimits[kind]} is used`);
    return defaultTimeLimits[kind];
  };
  return {
    mount: read('mount'),
    iscsi: read('iscsi'),
    nvmeof: read('nvmeof'),
    filesystem: read('filesystem'),
    restic: read('restic'),
    kopia: read('kopia'),
  };
}

let ofProcess: TimeLimits | undefined;

/** The limits of this process's environment, read once. */
export function processTimeLimits(): TimeLimits {
  ofProcess ??= readTimeLimits(process.env, (message) => process.emitWarning(message));
  return ofProcess;
}
