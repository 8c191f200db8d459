/** What guests boot from: made once, kept in the cache of the account, made again when what it is made from has changed. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { repository } from '../../scripts/lib/repository.ts';
import { output } from './run-program.ts';

/** Why there can be no guest here, or false. */
export const noGuests: string | false =
  process.getuid?.() !== 0
    ? 'NOT TESTED: a guest takes root'
    : process.arch !== 'x64' && 'NOT TESTED: guests are made for x86-64 (not in CI)';

export interface LabFiles {
  /** Holds root.img, kernel/ and key. */
  readonly image: string;
  /** Where each run makes its own folder. */
  readonly runs: string;
}

const scripts = join(import.meta.dirname, 'image');
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'switchboard-lab/guests');
const hourMs = 3_600_000;

/**
 * Makes what is missing: the image takes one or two minutes. The kernel is taken from the folder that SWITCHBOARD_LAB_KERNEL names, or from
 * ../shared/lab beside the repository; where neither is, it is built, which takes a quarter of an hour.
 */
export async function labFiles(say: (line: string) => void = () => {}): Promise<LabFiles> {
  const runs = join(cache, 'runs');
  await mkdir(runs, { recursive: true });
  const kernel = await kernelFolder(say);
  const sources = ['debian-mirror.sh', 'init.sh', 'make-image.sh'].map((name) => join(scripts, name));
  const image = join(
    cache,
    `image-${await stampOf([...sources, join(kernel, 'linux'), join(kernel, 'modules.tar.zst')])}`,
  );
  await make(image, 'key', [join(scripts, 'make-image.sh'), kernel], hourMs / 4, () =>
    say('Making the image of the guests (once; one or two minutes)'),
  );
  await removeOld('image-', image);
  return { image, runs };
}

async function kernelFolder(say: (line: string) => void): Promise<string> {
  const named = process.env.SWITCHBOARD_LAB_KERNEL;
  if (named && !isKernel(named)) throw new Error(`SWITCHBOARD_LAB_KERNEL: ${named} has no linux and modules.tar.zst`);
  const ready = [named, join(repository, '../shared/lab')].find((folder) => folder && isKernel(folder));
  if (ready) return resolve(ready);
  const sources = ['debian-mirror.sh', 'make-kernel.sh', 'kernel.config'].map((name) => join(scripts, name));
  const folder = join(cache, `kernel-${await stampOf(sources)}`);
  await make(folder, 'modules.tar.zst', [join(scripts, 'make-kernel.sh')], 2 * hourMs, () =>
    say('Building a kernel for the guests from Debian’s packages (once; about a quarter of an hour)'),
  );
  return folder;
}

const isKernel = (folder: string) => ['linux', 'modules.tar.zst'].every((name) => existsSync(join(folder, name)));

async function stampOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files) hash.update(await readFile(file));
  return hash.digest('hex').slice(0, 16);
}

/** Several test runs may want it at the same time: one makes it, under a name that shows it is not whole. */
async function make(folder: string, last: string, argv: readonly string[], limitMs: number, starting: () => void) {
  if (existsSync(join(folder, last))) return;
  starting();
  const script = 'test -e "$1/$2" && exit; rm -rf "$1.new"; "${@:3}" "$1.new" && mv -T "$1.new" "$1"';
  // In a namespace of processes, all of which end with this one.
  const together = ['unshare', '--pid', '--fork', '--kill-child', '--mount', '--mount-proc'];
  const lock = ['flock', join(cache, 'lock'), 'bash', '-c', script, 'make', folder, last];
  await output([...together, ...lock, ...argv], { timeoutMs: limitMs });
}

/** Another checkout may use another image at this time; one that nobody has wanted for a day goes. */
async function removeOld(prefix: string, current: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const path = join(cache, name);
    if (!name.startsWith(prefix) || path === current) continue;
    const { mtimeMs } = await stat(path);
    if (mtimeMs < Date.now() - 24 * hourMs) await rm(path, { recursive: true, force: true });
  }
}

/** A new folder for what guests write. Folders of processes that are gone are removed on the way. */
export async function runFolder({ runs }: LabFiles): Promise<string> {
  for (const name of await readdir(runs)) {
    if (!existsSync(`/proc/${name.split('-')[0]}`)) await rm(join(runs, name), { recursive: true, force: true });
  }
  return mkdtemp(join(runs, `${process.pid}-`));
}

/** The processor that the fewest guests of this account are pinned to; the guest of this folder is one of them from now on. */
export async function chooseCpu(folder: string): Promise<string> {
  const script = `for cpu in $(seq 0 $(($(nproc) - 1))); do echo "$(cat ../*/cpu 2>/dev/null | grep -cx $cpu) $cpu"; done |
    sort -k 1,1n -k 2,2nr | head -n 1 | cut -d ' ' -f 2 >cpu; cat cpu`;
  return (await output(['flock', join(cache, 'cpu.lock'), 'bash', '-c', `cd '${folder}' && ${script}`])).trim();
}
