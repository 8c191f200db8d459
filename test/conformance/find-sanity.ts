/** Where csi-sanity is, or how it gets there. */
import { chmod, mkdir, readdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { needProgram, run, type Say } from '../../scripts/executable/tools.ts';
import { repository } from '../../scripts/lib/repository.ts';

const version = 'v5.5.0';
const module_ = 'github.com/kubernetes-csi/csi-test/v5';

/** What go.mod of that version asks for. */
const goNeeded = [1, 25] as const;
const toolchain = `v0.0.1-go1.25.0.linux-${process.arch === 'x64' ? 'amd64' : process.arch}`;

const cache = join(repository, 'node_modules/.cache/csi-sanity');

/**
 * The path of csi-sanity in the one version that results are comparable with: found on this machine, or built with Go, which is
 * installed where that is allowed. Undefined when there is no way to it; why was said.
 */
export async function findSanity(say: Say): Promise<string | undefined> {
  const folders = [cache, process.env.GOBIN, join(homedir(), 'go/bin'), ...(process.env.PATH ?? '').split(delimiter)];
  for (const folder of folders) {
    if (!folder) continue;
    const path = join(folder, 'csi-sanity');
    if (await isWanted(path)) return path;
  }
  try {
    return await buildSanity(say);
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

/** Go writes into a program which modules it was made of; its own `--version` says nothing. */
async function isWanted(path: string): Promise<boolean> {
  const content = await readFile(path).catch(() => undefined);
  return content?.includes(`${module_}\t${version}\t`) === true;
}

async function buildSanity(say: Say): Promise<string> {
  const go = await findGo(say);
  if (go === undefined) throw new Error(`csi-sanity ${version} is not here, and neither is Go to build it with`);
  say(`building csi-sanity ${version} with ${go} (once; about a minute)`);
  await mkdir(cache, { recursive: true });
  const env = { GOBIN: cache, GOROOT: '', GOFLAGS: '-modcacherw' };
  await run(go, ['install', `${module_}/cmd/csi-sanity@${version}`], { env, timeoutMs: 600_000 });
  return join(cache, 'csi-sanity');
}

async function findGo(say: Say): Promise<string | undefined> {
  const usual = '/usr/local/go/bin/go';
  const present = (await versionOf('go')) ? 'go' : (await versionOf(usual)) ? usual : undefined;
  if (present === undefined && !(await needProgram('go', 'golang-go', say))) return undefined;
  const go = present ?? 'go';
  const [major = 0, minor = 0] = (await versionOf(go)) ?? [];
  const isNewEnough = major > goNeeded[0] || (major === goNeeded[0] && minor >= goNeeded[1]);
  return isNewEnough ? go : newerGo(go, say);
}

async function versionOf(go: string): Promise<number[] | undefined> {
  try {
    const { stdout } = await run(go, ['version']);
    return /go(\d+)\.(\d+)/.exec(stdout)?.slice(1).map(Number);
  } catch {
    return undefined;
  }
}

/** Go 1.21 and later fetch the toolchain that a module wants; earlier ones can be made to, because it is a module too. */
async function newerGo(go: string, say: Say): Promise<string> {
  say(`${go} is older than ${goNeeded.join('.')}: fetching the toolchain ${toolchain}`);
  const env = { GOTOOLCHAIN: 'local', GOFLAGS: '-modcacherw' };
  const { stdout } = await run(go, ['mod', 'download', '-json', `golang.org/toolchain@${toolchain}`], {
    env,
    timeoutMs: 600_000,
  });
  const { Dir }: { Dir: string } = JSON.parse(stdout);
  // Modules are unpacked without the right to run anything.
  for (const folder of [join(Dir, 'bin'), ...(await folders(join(Dir, 'pkg/tool')))]) {
    for (const name of await readdir(folder)) await chmod(join(folder, name), 0o755);
  }
  return join(Dir, 'bin/go');
}

async function folders(parent: string): Promise<string[]> {
  return (await readdir(parent)).map((name) => join(parent, name));
}
