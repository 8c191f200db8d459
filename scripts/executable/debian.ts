import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasProgram, run, type Say } from './tools.ts';

/** A Debian package in the version that the executable is built with. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
}

export interface Wanted {
  /** Debian's name of the processor. */
  readonly architecture: string;
  readonly suite: string;
  readonly packages: readonly DebianPackage[];
}

/**
 * Unpacks Debian packages of one suite into the folder `root`. Each comes from the folder `cache`, else from this machine's
 * Debian mirror, whatever Debian the machine itself runs. A pinned version that the mirror no longer has is replaced by the
 * suite's present one, which is said. Throws where there is no mirror.
 */
export async function unpackDebian(wanted: Wanted, cache: string, root: string, say: Say): Promise<void> {
  await mkdir(cache, { recursive: true });
  let files = await cached(wanted, cache);
  if (files.includes(undefined)) files = await download(wanted, cache, say);
  await mkdir(root, { recursive: true });
  for (const file of files) await run('dpkg-deb', ['-x', file!, root]);
}

const pinnedFile = (folder: string, wanted: DebianPackage): string =>
  join(folder, `${wanted.name}-${wanted.sha256}.deb`);

/** The pinned packages' files, as far as they are there and whole. */
function cached(wanted: Wanted, folder: string): Promise<(string | undefined)[]> {
  return Promise.all(
    wanted.packages.map(async (one) => {
      const content = await readFile(pinnedFile(folder, one)).catch(() => undefined);
      return content && sha256(content) === one.sha256 ? pinnedFile(folder, one) : undefined;
    }),
  );
}

const sha256 = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

async function download(wanted: Wanted, cache: string, say: Say): Promise<string[]> {
  for (const tool of ['apt-get', 'dpkg-deb'])
    if (!(await hasProgram(tool))) throw new Error(`there is no ${tool} here`);
  const apt = await mkdtemp(join(cache, 'apt-'));
  try {
    const env = { APT_CONFIG: await aptConfiguration(wanted, apt) };
    await run('apt-get', ['update', '-q'], { env });
    const files: string[] = [];
    for (const one of wanted.packages) files.push(await downloadOne(one, cache, apt, env, say));
    return files;
  } finally {
    await rm(apt, { recursive: true, force: true });
  }
}

async function downloadOne(one: DebianPackage, cache: string, apt: string, env: Record<string, string>, say: Say) {
  const place = join(apt, `download-${one.name}`);
  await mkdir(place);
  const pinned = run('apt-get', ['download', '-q', `${one.name}=${one.version}`], { env, cwd: place });
  await pinned.catch(() => run('apt-get', ['download', '-q', one.name], { env, cwd: place }));
  const file = (await readdir(place)).find((name) => name.endsWith('.deb'));
  if (!file) throw new Error(`apt-get downloaded no ${one.name}`);
  const found = sha256(await readFile(join(place, file)));
  const kept = pinnedFile(cache, { ...one, sha256: found });
  if (found !== one.sha256) {
    say(
      `NOT REPRODUCIBLE: ${one.name} ${one.version} is not what the mirror has; built with ${decodeURIComponent(file)}`,
    );
  }
  await rename(join(place, file), kept);
  return kept;
}

/** An apt of its own: another suite and architecture than the machine's, and nothing of the machine is changed. */
async function aptConfiguration(wanted: Wanted, apt: string): Promise<string> {
  for (const name of ['lists/partial', 'cache/archives/partial']) await mkdir(join(apt, name), { recursive: true });
  const source = `deb [signed-by=${keyring} arch=${wanted.architecture}] ${await mirror()} ${wanted.suite} main\n`;
  await writeFile(join(apt, 'sources.list'), source);
  await writeFile(join(apt, 'status'), '');
  const lines = [
    `APT::Architecture "${wanted.architecture}";`,
    `APT::Architectures { "${wanted.architecture}"; };`,
    `Dir::State "${apt}";`,
    `Dir::State::lists "${apt}/lists";`,
    `Dir::State::status "${apt}/status";`,
    `Dir::Cache "${apt}/cache";`,
    `Dir::Etc::sourcelist "${apt}/sources.list";`,
    'Dir::Etc::sourceparts "/dev/null";',
    'Dir::Etc::preferences "/dev/null";',
    'Dir::Etc::preferencesparts "/dev/null";',
    'Acquire::Languages "none";',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";',
    'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";',
    // The download folder may be closed to apt's own user.
    ...(process.getuid?.() === 0 ? ['APT::Sandbox::User "root";'] : []),
  ];
  const path = join(apt, 'apt.conf');
  await writeFile(path, `${lines.join('\n')}\n`);
  return path;
}

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The Debian mirror that this machine is set to use. */
async function mirror(): Promise<string> {
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(LABEL)', 'Created-By: Packages']);
  const sources = stdout.split('\n').map((line) => line.split(' '));
  // A fresh image has read no release file yet: then the label stays as it is written above.
  const found =
    sources.find(([, label]) => label === 'Debian') ??
    sources.find(([uri]) => uri?.replace(/\/$/, '').endsWith('/debian'));
  if (!found?.[0]) throw new Error('apt on this machine knows no Debian mirror');
  return found[0];
}
