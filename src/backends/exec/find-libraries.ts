import { dirname, join } from 'node:path/posix';
import { type Elf, readElf } from './elf.ts';
import { libraryDirectories } from './library-directories.ts';
import { resolveInRoot } from './root-path.ts';

export interface Libraries {
  /** Directories within the root that hold what the program needs, then all others that its loader knows: programs load more while they run. */
  readonly directories: readonly string[];
  /** Names of needed libraries that are nowhere. */
  readonly missing: readonly string[];
}

/** Finds the libraries that a program of a root needs, and those that these need. `file`: its path within the root. */
export async function findLibraries(root: string, file: string, elf: Elf, interpreter: string): Promise<Libraries> {
  const known = await libraryDirectories(root, interpreter);
  const musl = /ld-musl-/.test(interpreter);
  const used = new Set<string>();
  const missing: string[] = [];
  const seen = new Set<string>();
  const left: { readonly file: string; readonly elf: Elf }[] = [{ file, elf }];

  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const own = await runPathOf(root, next.file, next.elf);
    for (const name of next.elf.needed) {
      if (seen.has(name) || isLoader(name, interpreter, musl)) continue;
      seen.add(name);
      const found = await findLibrary(root, name, elf.machine, [...own, ...used, ...known]);
      if (!found) {
        missing.push(name);
        continue;
      }
      used.add(found.directory);
      left.push(found);
    }
  }
  return { directories: [...new Set([...used, ...known])], missing };
}

/** The loader is there already, and musl's is the C library too, under all of its names. */
function isLoader(name: string, interpreter: string, musl: boolean): boolean {
  if (interpreter.endsWith(`/${name}`)) return true;
  return musl && /^lib(c|crypt|dl|m|pthread|resolv|rt|util|xnet)\./.test(name);
}

async function findLibrary(root: string, name: string, machine: string, directories: readonly string[]) {
  for (const directory of directories) {
    const file = await resolveInRoot(root, join(directory, name));
    // A library of another processor or word size may have the same name.
    const elf = file === undefined ? undefined : await readElf(join(root, file)).catch(() => undefined);
    if (file !== undefined && elf?.machine === machine) return { directory, file, elf };
  }
  return undefined;
}

async function runPathOf(root: string, file: string, elf: Elf): Promise<readonly string[]> {
  const named = elf.runPath.map((path) => path.replace(/^\$(ORIGIN|\{ORIGIN\})/, dirname(file)));
  const resolved = await Promise.all(named.map((path) => resolveInRoot(root, path)));
  return resolved.filter((directory) => directory !== undefined);
}
