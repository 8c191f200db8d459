/** Guests: machines with a kernel of their own (User Mode Linux), up in seconds, without virtualization. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from '../../scripts/lib/repository.ts';
import { chooseCpu, type LabFiles, labFiles, runFolder } from './lab-files.ts';
import { type Network, openNetwork } from './network.ts';
import { output, type Result, type RunOptions, runProgram } from './run-program.ts';

export interface BootOptions {
  /** This folder is /host in the guest; the repository, unless another is named. */
  readonly hostDir?: string;
  /** Guests of one network see each other; without one, it has its own. */
  readonly network?: Network;
  /** Sizes of the empty disks /dev/ubdb, /dev/ubdc and so on, as truncate(1) writes them in bytes. They take only what is written. */
  readonly disks?: readonly number[];
  /** MiB. */
  readonly memory?: number;
}

export interface Guest {
  readonly name: string;
  readonly address: string;
  readonly addressV6: string;
  readonly network: Network;
  /** A folder of this machine for sockets and the like; it goes with the guest. */
  readonly folder: string;
  /** Runs a script of bash as root. Gives what it printed; rejects with all of its output when it fails. */
  run(script: string, options?: RunOptions): Promise<string>;
  /** The same, for what may fail. */
  attempt(script: string, options?: RunOptions): Promise<Result>;
  /** Starts a script that goes on; it gets SIGKILL here when this process ends, but not in the guest. */
  start(script: string): ChildProcess;
  /** Runs a program of this machine in the guest's network. */
  execInNetwork(...argv: string[]): Promise<string>;
  /** Gives a socket of this machine that is one of the guest's. */
  forward(guestSocket: string): Promise<string>;
  /** Pulls the network cable, and puts it back. */
  cut(): Promise<void>;
  heal(): Promise<void>;
  /** Pulls the power plug. Disks keep what had been written to them. */
  kill(): Promise<void>;
  /** Pulls the power plug if it is in, and boots with the disks as they are. */
  reboot(): Promise<void>;
  /** Ends it and removes what it has. */
  down(): Promise<void>;
}

const gib = 2 ** 30;

export async function boot(name: string, options: BootOptions = {}): Promise<Guest> {
  const files = await labFiles((line) => process.stderr.write(`${line}\n`));
  const network = options.network ?? (await openNetwork());
  const address = network.nextAddress();
  const folder = await runFolder(files);
  const disks = options.disks ?? [4 * gib];
  for (const [index, bytes] of disks.entries()) {
    await writeFile(join(folder, `disk${index}`), '');
    await truncate(join(folder, `disk${index}`), bytes);
  }
  // Unpinned, it is several times slower.
  const cpu = process.env.SWITCHBOARD_LAB_CPU || (await chooseCpu(folder));
  const machine = { name, cpu, address, folder, files, network, disks: disks.length, options };
  const control = join(folder, 'ssh');
  const ssh = ['ssh', '-F', '/dev/null', '-S', control, '-o', 'ProxyCommand=false', '-o', 'LogLevel=ERROR'];
  let sockets = 0;
  let powered: Powered | undefined;
  const off = async () => {
    await powered?.off();
    powered = undefined;
  };
  const guest: Guest = {
    name,
    address,
    addressV6: `fd00::${address.split('.')[3]}`,
    network,
    folder,
    run: (script, how) => output([...ssh, name, script], how),
    attempt: (script, how) => runProgram([...ssh, name, script], how),
    start: (script) =>
      spawn('setpriv', ['--pdeathsig', 'KILL', ...ssh, name, script], { stdio: ['ignore', 'pipe', 'pipe'] }),
    execInNetwork: (...argv) => output([...network.inside, ...argv]),
    async forward(guestSocket) {
      const own = join(folder, `socket${++sockets}`);
      await output([...ssh, '-O', 'forward', '-L', `${own}:${guestSocket}`, name]);
      return own;
    },
    cut: async () => void (await output([...network.inside, 'ip', 'link', 'set', name, 'nomaster'])),
    heal: async () => void (await output([...network.inside, 'ip', 'link', 'set', name, 'master', 'guests'])),
    kill: off,
    async reboot() {
      await off();
      powered = await powerOn(machine, control);
    },
    async down() {
      await off();
      if (!options.network) await network.close();
      await output(['rm', '-rf', folder]);
    },
  };
  try {
    await guest.reboot();
  } catch (error) {
    await guest.down();
    throw error;
  }
  return guest;
}

interface Machine {
  readonly name: string;
  readonly address: string;
  readonly folder: string;
  readonly files: LabFiles;
  readonly network: Network;
  readonly disks: number;
  readonly cpu: string;
  readonly options: BootOptions;
}

interface Powered {
  off(): Promise<void>;
}

/** The kernel runs in namespaces of its own, which end with this process, and so does everything in the guest. */
async function powerOn(machine: Machine, control: string): Promise<Powered> {
  const { name, address, folder, files, network, disks, cpu, options } = machine;
  await output([
    ...network.inside,
    'sh',
    '-c',
    `ip link show ${name} >/dev/null 2>&1 || ip tuntap add ${name} mode tap && ip link set ${name} master guests up`,
  ]);
  const root = join(files.image, 'kernel');
  const last = address.split('.')[3];
  const kernel = [
    `umid=${name}`,
    'uml_dir=/tmp',
    `mem=${options.memory ?? 2048}M`,
    'seccomp=on',
    'ubd0=/run/root.cow,/image/root.img',
    ...Array.from({ length: disks }, (_, index) => `ubd${index + 1}=/run/disk${index}`),
    'root=/dev/ubda rw rootfstype=ext4 init=/lab-init loglevel=4 con0=null,fd:1 con=null',
    `vec0:transport=tap,ifname=${name},depth=64,gro=1,mac=02:00:00:00:02:${Number(last).toString(16).padStart(2, '0')}`,
    `guest.name=${name} guest.address=${address} guest.folder=/folder`,
  ].join(' ');
  const script = `set -e
    mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mount -t tmpfs tmpfs "$1/tmp"
    mount --bind "$2" "$1/image"; mount --bind "$3" "$1/run"; mount --rbind "$4" "$1/folder"
    taskset -c "$5" chroot "$1" /linux ${kernel}
    exit $?`;
  const namespaces = ['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child'];
  const argv = [...network.inside, ...namespaces, 'bash', '-c', script, 'guest'];
  const child = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', ...argv, root, files.image, folder, options.hostDir ?? repository, cpu],
    { stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  );
  const ended = once(child, 'close');
  const off = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  try {
    await saidUp(child, name);
    const master = await connectSsh(machine, control);
    return {
      async off() {
        master.kill('SIGKILL');
        await off();
      },
    };
  } catch (error) {
    await off();
    throw error;
  }
}

/** Resolves when it is up. Tells what the kernel said last when it ends by itself, then or later. */
function saidUp(child: ChildProcess, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = '';
    const give = (why: string) => {
      clearTimeout(limit);
      reject(new Error(`guest ${name} ${why}:\n${said.slice(-4000)}`));
    };
    const limit = setTimeout(give, 60_000, 'did not come up in a minute');
    const listen = (chunk: Buffer) => {
      said = (said + chunk.toString('latin1')).slice(-10_000);
      if (!said.includes('the guest is up')) return;
      clearTimeout(limit);
      resolve();
    };
    child.stdout?.on('data', listen);
    child.stderr?.on('data', listen);
    child.on('error', (error) => give(error.message));
    child.on('close', () => {
      if (!child.killed) process.stderr.write(`guest ${name} ended:\n${said}\n`);
      give('ended');
    });
  });
}

/** One connection, which all commands and sockets share. The first packets to a guest that has just come up may be lost. */
async function connectSsh(machine: Machine, control: string): Promise<ChildProcess> {
  const giveUp = Date.now() + 30_000;
  for (;;) {
    const master = await trySsh(machine, control);
    if (typeof master !== 'string') return master;
    if (Date.now() > giveUp) throw new Error(`no connection to the guest at ${machine.address}: ${master}`);
  }
}

async function trySsh({ address, files, network }: Machine, control: string): Promise<ChildProcess | string> {
  const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', 'ConnectTimeout=20'];
  const ssh = ['ssh', '-F', '/dev/null', '-i', join(files.image, 'key'), ...options.flatMap((one) => ['-o', one])];
  const reach = [
    ...ssh,
    '-o',
    'ControlMaster=yes',
    '-S',
    control,
    `root@${address}`,
    'echo ready; exec sleep infinity',
  ];
  await output(['rm', '-f', control]);
  const master = spawn('setpriv', ['--pdeathsig', 'KILL', ...network.inside, ...reach], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let trouble = '';
  master.stderr.on('data', (text) => {
    trouble += text;
  });
  const ready = await Promise.race([once(master.stdout, 'data'), once(master, 'close').then(() => undefined)]);
  return ready ? master : trouble;
}
