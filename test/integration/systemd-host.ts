/** A host with a real systemd, made of namespaces: its own processes, mounts, control groups and /etc, and this machine's programs. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, lstat, mkdir, mkdtemp, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { buildBundle, bundlePath } from '../../scripts/lib/build-bundle.ts';
import { repository } from '../../scripts/lib/repository.ts';
import { removeFolder } from '../conformance/leftovers.ts';
import { until } from './server-under-test.ts';

const execute = promisify(execFile);

export interface SystemdHost {
  /** Runs a program of the host, and resolves with its standard output. Rejects when it fails. */
  run(program: string, ...args: string[]): Promise<string>;
  /** `systemctl show` of one property. */
  property(unit: string, name: string): Promise<string>;
  /** Writes a drop-in of a unit. */
  dropIn(unit: string, text: string): Promise<void>;
}

/** Units that those under test refer to, and whose real ones would start half of this machine. */
const targets =
  'basic default local-fs multi-user network network-online remote-fs shutdown sockets sysinit umount'.split(' ');

/** It takes about a second where it can be started at all. */
const bootLimitMs = 60_000;

/** Everything that is written goes to the folder or to memory. The last program becomes process 1. */
const boot = `
set -eu
mount --make-rprivate /
mount --bind "$1/etc" /etc
mount --bind "$1/units" /usr/lib/systemd/system
for empty in /run /usr/lib/systemd/system-generators /usr/local/bin /var/lib /var/tmp; do
  if [ -d $empty ]; then mount -t tmpfs -o mode=755 tmpfs $empty; fi
done
for file in node switchboard.mjs; do touch /usr/local/bin/$file; done
mount --bind "$2" /usr/local/bin/node
mount --bind "$3" /usr/local/bin/switchboard.mjs
printf '#!/bin/sh\\nexec /usr/local/bin/node /usr/local/bin/switchboard.mjs "$@"\\n' > /usr/local/bin/switchboard
chmod 755 /usr/local/bin/switchboard
mount -t tmpfs -o mode=1777 tmpfs /tmp
umount --recursive --lazy /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
export container=lxc
exec /usr/lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=0
`;

/** Boots it with the units of examples/systemd and a configuration with one connection, `local`. Undefined where systemd cannot be started. */
export async function bootSystemd(t: TestContext): Promise<SystemdHost | undefined> {
  await buildBundle();
  const root = await mkdtemp(join(tmpdir(), 'systemd-'));
  // The last thing made goes first.
  const undo: (() => Promise<unknown>)[] = [() => removeFolder(root)];
  t.after(async () => {
    for (const step of undo) await step();
  });
  await prepare(root);
  const group = await ownControlGroup();
  if (group === undefined) return undefined;
  undo.unshift(() => until(() => removeGroups(group)));
  const script = 'echo $$ > "$0/cgroup.procs"; exec unshare --pid --mount --fork --cgroup --ipc --uts "$@"';
  const inside = ['--kill-child', '--mount-proc', 'sh', '-c', boot, 'boot', root, process.execPath, bundlePath];
  const child = spawn('sh', ['-c', script, group, ...inside], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'close');
  undo.unshift(async () => {
    child.kill('SIGKILL');
    await ended;
  });

  let pid: string | undefined;
  const run = async (program: string, ...args: string[]) => {
    const enter = ['--target', pid ?? '', '--pid', '--mount', '--cgroup', '--ipc', '--uts', '--', program, ...args];
    return (await execute('nsenter', enter, { timeout: 60_000 })).stdout;
  };
  const isUp = async () => {
    pid ??= await firstChild(child.pid);
    if (pid === undefined) return false;
    return run('systemctl', 'is-active', 'multi-user.target').then(
      (state) => state.trim() === 'active',
      () => false,
    );
  };
  const giveUpAt = performance.now() + bootLimitMs;
  let up = false;
  await until(async () => {
    up = await isUp();
    return up || child.exitCode !== null || performance.now() > giveUpAt;
  });
  if (!up) return undefined;
  return {
    run,
    property: async (unit, name) => (await run('systemctl', 'show', '--value', '--property', name, unit)).trim(),
    async dropIn(unit, text) {
      await mkdir(join(root, 'etc/systemd/system', `${unit}.d`), { recursive: true });
      await writeFile(join(root, 'etc/systemd/system', `${unit}.d/test.conf`), text);
      await run('systemctl', 'daemon-reload');
    },
  };
}

async function prepare(root: string): Promise<void> {
  await cp('/etc', join(root, 'etc'), { recursive: true, verbatimSymlinks: true, filter: isPlain });
  const system = join(root, 'etc/systemd/system');
  await execute('rm', ['--recursive', '--force', system]);
  await cp(join(repository, 'examples/systemd'), system, { recursive: true });
  await mkdir(join(root, 'units'));
  for (const name of targets) {
    await writeFile(join(root, 'units', `${name}.target`), `[Unit]\nDescription=${name}\nDefaultDependencies=no\n`);
  }
  const configuration = join(root, 'etc/switchboard');
  await mkdir(join(configuration, 'connections'), { recursive: true });
  await writeFile(
    join(configuration, 'switchboard.yaml'),
    'driver: proxy\nproxy:\n  configFolder: /etc/switchboard/connections\n  nodeTopology: { type: node }\n',
  );
  await writeFile(
    join(configuration, 'connections/local.yaml'),
    'driver: local-hostpath\nlocal-hostpath:\n  shareBasePath: /var/lib/volumes\n  controllerBasePath: /var/lib/volumes\n',
  );
}

/** Sockets and pipes cannot be copied. */
async function isPlain(path: string): Promise<boolean> {
  const found = await lstat(path);
  return found.isFile() || found.isDirectory() || found.isSymbolicLink();
}

/** A control group to be the root of the host's. Undefined without the second version of control groups. */
async function ownControlGroup(): Promise<string | undefined> {
  const table = await readFile('/proc/self/mounts', 'utf8');
  const mounted = /^\S+ (\S+) cgroup2 /m.exec(table)?.[1];
  if (mounted === undefined) return undefined;
  const group = join(mounted, `switchboard-test-${process.pid}`);
  try {
    await mkdir(group);
  } catch {
    return undefined;
  }
  return group;
}

/** False while a process that was killed is still in one of them. */
async function removeGroups(group: string): Promise<boolean> {
  for (const entry of await readdir(group, { withFileTypes: true })) {
    if (entry.isDirectory() && !(await removeGroups(join(group, entry.name)))) return false;
  }
  return rmdir(group).then(
    () => true,
    () => false,
  );
}

async function firstChild(pid: number | undefined): Promise<string | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return children.trim().split(' ')[0] || undefined;
}
