/** The programs of the host, each found once and started by the strategy that fits it. */
import { CallError } from '../../core/errors.ts';
import { isProgram } from './find-program.ts';
import type { HostSettings } from './host-settings.ts';
import { directStrategy, type HostStrategy, type Invocation } from './host-strategy.ts';
import { type FoundThere, isOfTheHost, type Located, locate } from './locate.ts';
import { needsHostsHelper } from './mount-helper.ts';
import type { PlacedMounts } from './path-there.ts';
import { mountType, translateArguments } from './translate-arguments.ts';

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
}

/** Makes the strategy that the settings describe. Nothing is looked at before the first program is asked for. */
export function createHostPrograms(options: HostProgramsOptions): HostPrograms {
  const { settings, path } = options;
  const known = new Map<string, FoundThere>();

  const strategy: HostStrategy = (program, args) => {
    if (settings.strategy === 'direct' && !Object.hasOwn(settings.programs, program))
      return directStrategy(program, args);
    const type = program === 'mount' ? mountType(args) : undefined;
    const key = type === undefined ? program : `mount ${type}`;
    const located = known.get(key);
    // What is in this root costs nothing more than its start.
    if (located?.strategy === 'direct') return invocation(located, args);
    return start(key, program, type, args);
  };

  async function start(key: string, program: string, type: string | undefined, args: readonly string[]) {
    let located = known.get(key);
    if (!located || !(await isProgram(located.file))) {
      const inHostRoot = type !== undefined && (await needsHostsHelper(type, { settings, path }));
      located = found(await locate(program, { settings, path, inHostRoot }));
      known.set(key, located);
    }
    return located.place ? invocation(located, await translated(located, args)) : invocation(located, args);
  }

  async function translated({ program, place }: FoundThere, args: readonly string[]): Promise<readonly string[]> {
    if (!place || isOfTheHost(program)) return args;
    const here = await options.readMounts();
    const roots =
      place.way === 'chroot'
        ? { here, there: here, root: place.root }
        : { here, there: await options.readMounts(place.pid), root: '/' };
    return translateArguments(program, args, roots);
  }

  function invocation({ start, place }: FoundThere, args: readonly string[]): Invocation {
    const [file = '', ...before] = start.argv;
    const env = place && { PATH: settings.searchPath.join(':') };
    return { file, args: [...before, ...args], argv0: start.argv0, env };
  }

  return { strategy, locateProgram: (program) => locate(program, { settings, path }) };
}

function found(located: Located): FoundThere {
  if (located.strategy !== undefined) return located;
  throw new CallError(
    'FAILED_PRECONDITION',
    `host program \`${located.program}\` was not found (${located.passed.join('; ')})`,
  );
}
