import { CallError } from '../../core/errors.ts';
import { type PlacedMount, pathThere, placeThere, type TwoRoots } from './path-there.ts';

/** What they print is a path, which would be one of the other root. */
const answeringPaths: readonly string[] = ['realpath', 'readlink', 'findmnt'];

/** They mount or unmount at the path that comes last. */
const mounting: ReadonlySet<string> = new Set(['mount', 'umount', 'oneclient', 'mount.objectivefs']);

/** Whether a program mounts something at a path of this root, wherever it runs. */
export function isMounting(program: string): boolean {
  return mounting.has(program);
}

/** The same everywhere: the devices and the kernel's own files. */
const common = /^\/(dev|proc|sys)(\/|$)/;

/**
 * The arguments for a program that runs in another root: paths of this root become the paths there. A path that no mount of its own brings
 * into this root is taken for one of the host's and stays. Throws FAILED_PRECONDITION rather than let a program look at the wrong place.
 */
export function translateArguments(program: string, args: readonly string[], roots: TwoRoots): readonly string[] {
  if (isMounting(program)) return mountArguments(program, args, roots);
  return args.map((argument) => {
    if (!isPath(argument)) return unchanged(program, argument, roots);
    const path = there(program, argument, roots);
    if (path !== argument && answeringPaths.includes(program)) throw elsewhere(program, argument, path);
    return path;
  });
}

/** The file system type that mount(8) is told. */
export function mountType(args: readonly string[]): string | undefined {
  const at = args.findIndex((argument) => argument === '-t' || argument === '--types');
  return at < 0 ? undefined : args[at + 1];
}

/**
 * Whether mount(8) is to set flags of a single mount, such as `ro` for a bind mount. They are not propagated: of a mount that is made in another
 * root and seen here, they would be those of the mount there alone.
 */
export function setsMountFlags(args: readonly string[]): boolean {
  return args.some((argument, index) => {
    const options = /^(-o|--options)$/.test(args[index - 1] ?? '') ? argument.split(',') : [];
    return options.some((option) => /^(r?bind|remount)$/.test(option)) || /^--r?bind$/.test(argument);
  });
}

function mountArguments(program: string, args: readonly string[], roots: TwoRoots): readonly string[] {
  return args.map((argument, index) => {
    const isValue = /^(-[ot]|--options|--types)$/.test(args[index - 1] ?? '');
    // The place comes last; it is a path of its own kind, as something may be mounted there.
    if (index === args.length - 1 && !isValue && isPath(argument)) return place(program, argument, roots);
    if (isValue || !isPath(argument)) return unchanged(program, argument, roots);
    return there(program, argument, roots);
  });
}

function place(program: string, path: string, roots: TwoRoots): string {
  const found = placeThere(path, roots);
  if (found !== undefined) return found;
  throw new CallError(
    'FAILED_PRECONDITION',
    `\`${program}\` has to run in the host's root, but what it mounts there is not seen at ${path} here: give this container the host's root ` +
      'at /host recursively and with shared propagation (Kubernetes: mountPropagation: Bidirectional; Docker and Nomad: rshared)',
  );
}

function there(program: string, path: string, roots: TwoRoots): string {
  const found = pathThere(path, roots);
  if (found !== undefined || isOfOwnRoot(roots.here.covering(path))) return found ?? path;
  throw new CallError(
    'FAILED_PRECONDITION',
    `\`${program}\` has to run in the host's root, where ${path} cannot be reached: give this container the host's root at /host recursively, ` +
      `or set host.programs.${program}.strategy to loader`,
  );
}

/** An argument that may have paths within it, which nobody can tell from other text for certain: they have to be the same on both sides. */
function unchanged(program: string, argument: string, roots: TwoRoots): string {
  for (const part of argument.split(/[\s=,]/)) {
    if (!isPath(part) || isOfOwnRoot(roots.here.covering(part))) continue;
    const path = pathThere(part, roots);
    if (path !== part) throw elsewhere(program, part, path);
  }
  return argument;
}

/** `//server/share` is no path. */
function isPath(argument: string): boolean {
  return /^\/[^/]/.test(argument) && !common.test(argument);
}

function isOfOwnRoot(mount: PlacedMount | undefined): boolean {
  return mount === undefined || mount.mountPoint === '/';
}

function elsewhere(program: string, path: string, other: string | undefined): CallError {
  const where = other === undefined ? 'cannot be reached' : `is ${other}`;
  return new CallError(
    'FAILED_PRECONDITION',
    `\`${program}\` would run in the host's root, where ${path} ${where}: set host.programs.${program}.strategy to loader`,
  );
}
