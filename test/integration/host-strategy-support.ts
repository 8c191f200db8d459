/**
 * A plugin's container: an otherwise empty root that holds the executable, with the machine's root at /host. A second mount namespace around it
 * plays the host, whose process 1 is the only one that the container sees besides its own.
 */
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Ended, executable, runToEnd } from './executable-support.ts';

export interface Plugin {
  /** Where the folder of the volumes is in the container: at the host's path, as in Kubernetes, or elsewhere, as in Docker and Nomad. */
  readonly volumes: 'at the same path' | 'elsewhere';
  /** How /host takes part in what is mounted on the host and below itself; 'none' when there is no /host. */
  readonly hostRoot: 'rshared' | 'rslave' | 'rprivate' | 'none';
  /** Options of `serve`. */
  readonly options: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Run in the root of the machine instead. */
  readonly onHost?: boolean;
}

export interface PluginRun extends Ended {
  /** Lines of the plugin's log. */
  readonly log: readonly LogLine[];
}

export interface LogLine {
  readonly message?: string;
  readonly program?: string;
  readonly args?: readonly string[];
  readonly by?: string;
  readonly outcome?: string;
}

/**
 * Serves a proxy without connections and runs shell commands meanwhile. They have `ctl`, which is `switchboard ctl`; `$v`, the volumes' folder
 * as the plugin knows it; `onhost`, which runs a command in the host's mount namespace, where that folder is `$folder/volumes`; and `$root`.
 */
export async function withPlugin(t: TestContext, plugin: Plugin, commands: string, env = {}): Promise<PluginRun> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'host-strategy-')));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const name of ['volumes', 'state', 'root']) await mkdir(join(folder, name));
  const samePath = plugin.volumes === 'at the same path' || plugin.onHost;
  const variables = {
    PATH: process.env.PATH,
    executable,
    folder,
    root: plugin.onHost ? '' : join(folder, 'root'),
    v: samePath ? join(folder, 'volumes') : '/local/csi',
    propagation: plugin.hostRoot,
    container: plugin.onHost ? ':' : plugin.hostRoot === 'none' ? makeRoot : `${makeRoot}\n${mountHostRoot}`,
    inside: plugin.onHost ? '' : `chroot ${join(folder, 'root')}`,
    program: plugin.onHost ? executable : '/switchboard',
    options: plugin.options.join(' '),
    state: plugin.onHost ? join(folder, 'state') : '/state',
    serverEnv: Object.entries(plugin.env ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    commands: `${serve}\n${commands}\n${stop}`,
    ...env,
  };
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
  const ended = await runToEnd('unshare', [...namespaces, 'sh', '-c', host], variables);
  const log = await readFile(join(folder, 'log'), 'utf8').catch(() => '');
  return { ...ended, log: log.split('\n').flatMap(parseLine) };
}

function parseLine(line: string): readonly LogLine[] {
  return line.startsWith('{') ? [JSON.parse(line)] : [];
}

// The first process of its namespace stays outside of the container.
const host = `set -eu
mount --make-rshared /
mount -t proc proc /proc
unshare --mount --propagation unchanged sh -euc "$container
$commands"`;

// Not one of the copies below /host: the host does not see a container's own root.
const makeRoot = `mount -t tmpfs -o size=16m,mode=0755 none "$root"
mount --make-unbindable "$root"
mkdir "$root/proc" "$root/dev" "$root/sys" "$root/state"
touch "$root/switchboard"
mount --bind "$executable" "$root/switchboard"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mkdir -p "$root$v"
mount --bind "$folder/volumes" "$root$v"`;

const mountHostRoot = `mkdir "$root/host"
mount --rbind / "$root/host"
mount --make-$propagation "$root/host"`;

const serve = `onhost() { nsenter --mount=/proc/1/ns/mnt "$@"; }
mkdir -p "$root$state/connections"
printf 'driver: proxy\\nproxy: { configFolder: %s, nodeTopology: { type: node } }\\n' "$state/connections" >"$root$state/main.yaml"
printf 'driver: local-hostpath\\nlocal-hostpath: { shareBasePath: /none, controllerBasePath: /none }\\n' >"$root$state/connections/c.yaml"
socket="unix://$state/csi.sock"
env -i PATH="$PATH" SWITCHBOARD_STATE_DIR="$state" $serverEnv $inside "$program" serve --config "$state/main.yaml" --endpoint "$socket" --log-level debug --log-format json $options >"$folder/log" 2>&1 &
server=$!
ctl() { env -i PATH="$PATH" $inside "$program" ctl --endpoint "$socket" "$@"; }
until env -i PATH="$PATH" $inside "$program" probe --endpoint "$socket" >/dev/null 2>&1; do kill -0 $server || { cat "$folder/log" >&2; exit 1; }; done`;

const stop = `kill -TERM $server
wait $server`;
