/** The host programs that integration tests use, and the Debian packages they come in. */
import { execFile, spawn } from 'node:child_process';
import { access } from 'node:fs/promises';
import { promisify } from 'node:util';

const packages: Readonly<Record<string, string>> = {
  mount: 'mount',
  losetup: 'mount',
  findmnt: 'util-linux',
  unshare: 'util-linux',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  'mkfs.btrfs': 'btrfs-progs',
  setfacl: 'acl',
  setfattr: 'attr',
  setquota: 'quota',
  strace: 'strace',
  rsync: 'rsync',
  restic: 'restic',
  bindfs: 'bindfs',
  chromium: 'chromium',
  'systemd-analyze': 'systemd',
  'systemd-notify': 'systemd',
  'systemd-socket-activate': 'systemd',
  perl: 'perl-base',
  sshd: 'openssh-server',
  'ssh-keygen': 'openssh-client',
};

/**
 * Makes the programs available: as root, missing packages are installed by apt-get. Gives what is missing in the end: names of programs, and
 * `root` when the tests do not run as root, `loop` where loop devices cannot be made. Says what it does and what is missing.
 */
export async function prepareHost(): Promise<string[]> {
  const isRoot = process.getuid?.() === 0;
  process.env.PATH += ':/usr/sbin:/sbin';
  let programs = await missingPrograms();
  if (programs.length > 0 && isRoot) {
    await install([...new Set(programs.map((program) => packages[program]!))]);
    programs = await missingPrograms();
  }
  const loop = await access('/dev/loop-control').then(
    () => true,
    () => false,
  );
  const missing = [...(isRoot ? [] : ['root']), ...(loop ? [] : ['loop']), ...programs];
  if (missing.length > 0) console.log(`! NOT EVERYTHING CAN BE TESTED HERE. Missing: ${missing.join(', ')}`);
  return missing;
}

async function missingPrograms(): Promise<string[]> {
  const found = await Promise.all(Object.keys(packages).map(isInPath));
  return Object.keys(packages).filter((_, index) => !found[index]);
}

async function isInPath(program: string): Promise<boolean> {
  return promisify(execFile)('/bin/sh', ['-c', 'command -v -- "$1"', 'sh', program]).then(
    () => true,
    () => false,
  );
}

async function install(names: readonly string[]): Promise<void> {
  console.log(`Installing Debian packages for the tests: ${names.join(' ')}`);
  const args = ['install', '--yes', '--quiet', '--no-install-recommends', ...names];
  if (await aptGet(args)) return;
  await aptGet(['update', '--quiet']);
  if (!(await aptGet(args))) console.log('! apt-get could not install them');
}

function aptGet(args: readonly string[]): Promise<boolean> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const child = spawn('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env });
  return new Promise((resolve) => {
    child.on('error', () => resolve(false));
    child.on('close', (code) => resolve(code === 0));
  });
}
