/** The programs of the host, each found once and started by the strategy that fits it. */
import { CallError } from '../../core/errors.ts';
import { editionOf } from './find-program.ts';
import type { HostPlace } from './host-place.ts';
import type { HostSettings } from './host-settings.ts';
import { directStrategy, type HostStrategy, type Invocation } from './host-strategy.ts';
import { entersNetwork, type FoundThere, isOfTheHost, type Located, locate } from './locate.ts';
import { needsHostsHelper } from './mount-helper.ts';
import { isSharedPlace, type PlacedMounts, type TwoRoots } from './path-there.ts';
import type { ProgramPlace } from './run.ts';
import { isMounting, mountType, setsMountFlags, translateArguments } from './translate-arguments.ts';

export interface HostProgramsOptions {
  readonly settings: HostSettings;
  /** This process's own `PATH`. */
  readonly path: string | undefined;
  /** The mounts of a process's namespace; of this process's when no id is given. */
  readonly readMounts: (pid?: number) => Promise<PlacedMounts>;
}

export interface HostPrograms {
  readonly strategy: HostStrategy;
  /** Where a program is and how it would be started, looked up anew. Nothing is started. Never throws. */
  locateProgram(program: string): Promise<Located>;
  /** Where a program does its work, looked up anew. Never throws. */
  placeOf(program: string): Promise<ProgramPlace>;
}

interface Known extends FoundThere {
  readonly edition: string | undefined;
}

/** Makes the strategy that the settings describe. Nothing is looked at before the first program is asked for. */
export function createHostPrograms(options: HostProgramsOptions): HostPrograms {
  const { settings, path } = options;
  const known = new Map<string, Known>();

  const strategy: HostStrategy = (program, args) => {
    if (settings.strategy === 'direct' && !Object.hasOwn(settings.programs, program))
      return directStrategy(program, args);
    const type = program === 'mount' ? mountType(args) : undefined;
    const located = known.get(keyOf(program, type));
    // What is in this root costs nothing more than its start.
    if (located?.strategy === 'direct') return invocation(located, args);
    return start(program, type, args);
  };

  async function start(program: string, type: string | undefined, args: readonly string[]): Promise<Invocation> {
    const located = await find(program, type);
    if (!located.place || (isOfTheHost(program) && !isMounting(program))) return invocation(located, args);
    const roots = await rootsOf(located.place);
    const place = args.at(-1) ?? '';
    if (program === 'mount' && setsMountFlags(args) && isSharedPlace(place, roots)) {
      const own = await find(program, type, 'own').catch(() => undefined);
      if (own) return invocation(own, args);
    }
    return invocation(located, translateArguments(program, args, roots));
  }

  /** Looks for a program, or only whether it is still the same if it was found before. */
  async function find(program: string, type: string | undefined, root?: 'own'): Promise<FoundThere> {
    const key = root === undefined ? keyOf(program, type) : `${program}, ${root} root`;
    const before = known.get(key);
    if (before && (await editionOf(before.file)) === before.edition) return before;
    const helped = root === undefined && type !== undefined && (await needsHostsHelper(type, { settings, path }));
    const located = found(await locate(program, { settings, path, inRoot: helped ? 'host' : root }));
    known.set(key, { ...located, edition: await editionOf(located.file) });
    return located;
  }

  async function rootsOf({ way, root, pid }: HostPlace): Promise<TwoRoots> {
    const here = await options.readMounts();
    return way === 'chroot' ? { here, there: here, root } : { here, there: await options.readMounts(pid), root: '/' };
  }

  function invocation({ start, place }: FoundThere, args: readonly string[]): Invocation {
    const [file = '', ...before] = start.argv;
    const env = place ? { PATH: settings.searchPath.join(':') } : start.env;
    return { file, args: [...before, ...args], argv0: start.argv0, env };
  }

  const locateProgram = (program: string) => locate(program, { settings, path });
  return { strategy, locateProgram, placeOf: async (program) => placeOf(program, await locateProgram(program)) };
}

function placeOf(program: string, located: Located): ProgramPlace {
  const place = located.strategy === undefined ? undefined : located.place;
  if (!place) return { root: '/', ownNetwork: true };
  return { root: place.root, ownNetwork: place.way === 'chroot' || !entersNetwork(program) };
}

function keyOf(program: string, type: string | undefined): string {
  return type === undefined ? program : `${program} -t ${type}`;
}

function found(located: Located): FoundThere {
  if (located.strategy !== undefined) return located;
  throw new CallError(
    'FAILED_PRECONDITION',
    `host program \`${located.program}\` was not found (${located.passed.join('; ')})`,
  );
}
