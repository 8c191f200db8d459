/** Mount options: which of them belong to a single mount (and so work on bind mounts), and whether a mount has those that are wanted. */
import { CallError } from '../core/errors.ts';
import type { Mount } from './mount-table.ts';

/** Options of one mount, each with the one it takes back. Everything else is for the file system below. */
const opposites: Readonly<Record<string, string>> = {
  ro: 'rw',
  nosuid: 'suid',
  nodev: 'dev',
  noexec: 'exec',
  nosymfollow: 'symfollow',
  noatime: 'atime',
  nodiratime: 'diratime',
  relatime: 'norelatime',
  strictatime: 'nostrictatime',
};
const restrictions = Object.keys(opposites);
const permissions = Object.values(opposites);

/** Options that protect the node: a bind mount keeps them from its source even when it gets others of its own. */
const protections = ['nosuid', 'nodev', 'noexec', 'nosymfollow'];

/** Options that would make mount(8) do something else than mount this volume here. */
const forbidden =
  /^(?:remount|r?bind|move|r?(?:un)?(?:bindable|shared|slave|private)|make-.*|x-mount\..*|loop(?:=.*)?)$/i;

/** Flags of requests and configurations as single options. Throws INVALID_ARGUMENT for those that no volume may have. */
export function splitFlags(flags: readonly string[]): readonly string[] {
  const options = flags.flatMap((text) => text.match(/(?:"[^"]*"|[^,])+/g) ?? []).map((option) => option.trim());
  for (const option of options) {
    if (forbidden.test(option) || /[\0\n]/.test(option)) {
      throw new CallError('INVALID_ARGUMENT', `mount flag ${JSON.stringify(option)} cannot be used for a volume`);
    }
  }
  return options.filter((option) => option !== '' && option !== 'defaults');
}

/** The restrictions of a single mount that `options` add up to, the later ones winning: `ro`, `noatime` … */
export function restrictionsOf(options: readonly string[]): ReadonlySet<string> {
  const set = new Set<string>();
  for (const option of options) {
    const lifted = permissions.indexOf(option);
    if (restrictions.includes(option)) set.add(option);
    else if (lifted >= 0) set.delete(restrictions[lifted] as string);
  }
  return set;
}

/**
 * Options for a bind mount of what `source` shows. mount(8) changes a bind mount's options by setting them all anew, which would lift `nosuid`
 * and others that the source has; so those are named again. Access time options are kept by the kernel unless one is named.
 */
export function bindOptions(
  source: Pick<Mount, 'options'>,
  flags: readonly string[],
  readonly: boolean,
): readonly string[] {
  const own = [...restrictionsOf([...flags, ...(readonly ? ['ro'] : [])])];
  if (own.length === 0) return ['bind'];
  const kept = source.options.filter((option) => restrictions.includes(option) && !isAccessTime(option));
  return ['bind', ...new Set([...kept, ...own])];
}

/** What an existing mount has against being used for a request; undefined: nothing. */
export function mismatch(
  existing: Pick<Mount, 'options'>,
  wanted: {
    readonly flags: readonly string[];
    readonly readonly: boolean;
    readonly inherited?: readonly string[] | undefined;
  },
): string | undefined {
  const has = new Set(existing.options);
  const wants = restrictionsOf([...wanted.flags, ...(wanted.readonly ? ['ro'] : [])]);
  const inherits = new Set(wanted.inherited ?? []);
  if (has.has('ro') && !wants.has('ro') && !inherits.has('ro')) return 'it is read-only';
  for (const option of wants) {
    // The kernel does not tell strictatime, and relatime is its default.
    if (!has.has(option) && option !== 'strictatime' && option !== 'relatime') {
      return option === 'ro' ? 'it is writable' : `it is without ${option}`;
    }
  }
  const extra = protections.find((option) => has.has(option) && !wants.has(option) && !inherits.has(option));
  return extra && wanted.inherited ? `it has ${extra}` : undefined;
}

function isAccessTime(option: string): boolean {
  return option.endsWith('atime');
}
