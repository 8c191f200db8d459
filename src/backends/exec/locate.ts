/** Where a program is found, and by which strategy it is started. */
import { join } from 'node:path/posix';
import { borrow } from './borrow.ts';
import { type FoundProgram, findProgram } from './find-program.ts';
import { type HostPlace, hostPlace, type PlaceOrWhy, processNamespace, rootDirectory } from './host-place.ts';
import type { HostSettings, HostStrategyName, ProgramSettings } from './host-settings.ts';
import type { Start } from './host-strategy.ts';
import { searchPath } from './search-path.ts';

export type Located = FoundThere | NotFound;

export interface FoundThere {
  readonly program: string;
  readonly strategy: Exclude<HostStrategyName, 'auto'>;
  /** Its file as this process sees it. */
  readonly file: string;
  readonly start: Start;
  /** Set when it runs in another root than this process. */
  readonly place?: HostPlace | undefined;
  /** What was tried before, and why it was not that: "not in the search path of this root". */
  readonly passed: readonly string[];
}

export interface NotFound {
  readonly program: string;
  readonly strategy: undefined;
  readonly passed: readonly string[];
}

export interface LocateOptions {
  readonly settings: HostSettings;
  /** This process's own `PATH`. */
  readonly path: string | undefined;
  /** The root that the program has to do its work in this time. `own`: it is not found otherwise. */
  readonly inRoot?: 'own' | 'host' | undefined;
}

/**
 * Programs that have to do with the host's daemons, settings or accounts, or that start others of the host's programs. All others only need
 * the kernel and the paths they are given, which are paths of this process's root.
 */
const ofTheHost: ReadonlySet<string> = new Set(
  'iscsiadm multipath multipathd nvme zfs zpool targetcli oneclient udevadm dmsetup lvm getent fsck sudo sh'.split(' '),
);

/** Whether a program's arguments speak of the host's files rather than of this process's. */
export function isOfTheHost(program: string): boolean {
  return ofTheHost.has(program);
}

/** Entering the network of the host too: its daemon listens on a socket without a path. */
const ofTheHostsNetwork: ReadonlySet<string> = new Set(['iscsiadm']);

/** Whether a program whose namespaces are entered is given the network there too. */
export function entersNetwork(program: string): boolean {
  return ofTheHostsNetwork.has(program);
}

/** Looks for a program; nothing is started. Never throws. */
export async function locate(program: string, options: LocateOptions): Promise<Located> {
  const own = options.settings.programs[program] ?? {};
  const search: Search = { ...options, program, own, passed: [] };
  const strategy = own.strategy ?? options.settings.strategy;
  const found = await (options.inRoot === 'own' ? inOwnRoot(search, strategy) : byStrategy[strategy](search));
  return found ?? { program, strategy: undefined, passed: search.passed };
}

interface Search extends LocateOptions {
  readonly program: string;
  readonly own: ProgramSettings;
  readonly passed: string[];
}

const byStrategy: Readonly<Record<HostStrategyName, (search: Search) => Promise<FoundThere | undefined>>> = {
  direct,
  async chroot(search) {
    const place = await noted(search, rootDirectory(search.settings.root));
    return place && within(search, place, (found) => enter(search, place, found, 'own'));
  },
  async nsenter(search) {
    const place = await noted(search, processNamespace(search.own.pid ?? search.settings.pid));
    return place && within(search, place, (found) => enter(search, place, found, 'own'));
  },
  loader: (search) => fromHost(search, 'loader'),
  auto: async (search) => {
    return (search.inRoot === 'host' ? undefined : await direct(search)) ?? (await fromHost(search, 'own'));
  },
};

async function inOwnRoot(search: Search, strategy: HostStrategyName): Promise<FoundThere | undefined> {
  const found = await direct(search);
  if (found || strategy === 'direct') return found;
  const place =
    strategy === 'nsenter'
      ? await noted(search, processNamespace(search.own.pid ?? search.settings.pid))
      : await hostPlaceOf(search);
  return place && within(search, place, (one) => borrowed(search, place, one));
}

async function direct(search: Search): Promise<FoundThere | undefined> {
  const { program, own, settings, passed } = search;
  const directories = searchPath(search.path, settings.searchPath);
  const found = await findProgram('/', own.path ?? program, directories);
  if (!found) {
    passed.push(own.path ? `there is no program ${own.path} here` : `not in ${directories.join(':')}`);
    return undefined;
  }
  // By its name, so that it is found again where it went when it was replaced.
  const argv = [...(own.prefix ?? []), own.path ?? program];
  return { program, strategy: 'direct', file: found.path, start: { argv }, passed };
}

/** From where the host's files are seen: the program in this root if that is enough for it, or else in the host's. */
async function fromHost(search: Search, tools: Tools): Promise<FoundThere | undefined> {
  const place = await hostPlaceOf(search);
  return (
    place &&
    within(search, place, async (found) => {
      return (await borrowed(search, place, found)) ?? (await enter(search, place, found, tools));
    })
  );
}

async function hostPlaceOf(search: Search): Promise<HostPlace | undefined> {
  const { own, settings, passed } = search;
  const { place, passed: without } = await hostPlace(settings.root, own.pid ?? settings.pid);
  passed.push(...without);
  return place;
}

async function noted(search: Search, place: Promise<PlaceOrWhy>): Promise<HostPlace | undefined> {
  const found = await place;
  if (!('why' in found)) return found;
  search.passed.push(found.why);
  return undefined;
}

async function within(
  search: Search,
  { root }: HostPlace,
  start: (found: FoundProgram) => Promise<FoundThere | undefined>,
): Promise<FoundThere | undefined> {
  const { program, own, settings, passed } = search;
  const found = await findProgram(root, own.path ?? program, settings.searchPath);
  if (found) return start(found);
  passed.push(
    own.path ? `there is no program ${own.path} in ${root}` : `not in ${settings.searchPath.join(':')} of ${root}`,
  );
  return undefined;
}

/** The program in this root. Undefined when it had better be in the host's. */
async function borrowed(search: Search, { root }: HostPlace, found: FoundProgram): Promise<FoundThere | undefined> {
  const { program, own, passed, inRoot } = search;
  if (inRoot === 'host' || own.prefix?.length || ofTheHost.has(program)) return undefined;
  const result = await borrow(root, found);
  if ('start' in result) {
    return { program, strategy: 'loader', file: join(root, found.file), start: result.start, passed };
  }
  passed.push(result.why);
  return undefined;
}

/** Whose `chroot` or `nsenter`: this root's own if there is one, or in any case the host's. */
type Tools = 'own' | 'loader';

async function enter(
  search: Search,
  place: HostPlace,
  found: FoundProgram,
  tools: Tools,
): Promise<FoundThere | undefined> {
  const tool = await entrance(search, place, tools);
  if (!tool) return undefined;
  const { program, own, passed } = search;
  const argv = [...tool.argv, ...target(place, program), ...(own.prefix ?? []), found.path];
  const start = { ...tool, argv };
  return { program, strategy: place.way, file: join(place.root, found.file), start, place, passed };
}

function target({ way, root, pid }: HostPlace, program: string): readonly string[] {
  if (way === 'chroot') return [root];
  const net = entersNetwork(program) ? [`--net=/proc/${pid}/ns/net`] : [];
  return [`--mount=/proc/${pid}/ns/mnt`, ...net, '--'];
}

async function entrance(search: Search, place: HostPlace, tools: Tools): Promise<Start | undefined> {
  const { settings, passed, path } = search;
  if (tools === 'own') {
    const own = await findProgram('/', place.way, searchPath(path, settings.searchPath));
    if (own) return { argv: [own.path] };
  }
  for (const root of await toolRoots(search, place)) {
    const found = await findProgram(root, place.way, settings.searchPath);
    const result = found ? await borrow(root, found) : { why: 'it is not there' };
    if ('start' in result) return result.start;
    passed.push(`no ${place.way} from ${root}: ${result.why}`);
  }
  return undefined;
}

/** A process that is entered may have a root without tools, as the containers of daemons have; the host's root directory is asked first. */
async function toolRoots({ settings }: Search, place: HostPlace): Promise<readonly string[]> {
  if (place.way === 'chroot') return [place.root];
  const directory = await rootDirectory(settings.root);
  return 'why' in directory ? [place.root] : [directory.root, place.root];
}
