/** The storage host of the benchmark: a guest with a pool, NFS, and a server of SSH that writes down every session and what is sent in it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { boot, type Guest } from '../../lab/guest.ts';
import { labFiles } from '../../lab/lab-files.ts';
import { createPool } from '../../lab/services/backing.ts';
import { startNfsServer } from '../../lab/services/nfs-server.ts';
import { cpuMs, processTree } from '../process-tree.ts';
import { shareOptions } from './subject.ts';

export const parent = 'tank/v';

export interface Storage {
  readonly guest: Guest;
  readonly port: number;
  /** A file of this machine that opens root's account. */
  readonly keyFile: string;
  /** CPU time that the whole guest has used, in milliseconds. */
  cpuMs(): Promise<number>;
  /** What `work` did here: sessions as its SSH server wrote them down, and the programs that were run in them. Takes no times. */
  watch(work: () => Promise<unknown>): Promise<Seen>;
  /**
   * The least that making and deleting volumes takes: in shells of the host itself, `zfs create` and `zfs destroy` of shared file systems, so many
   * loops at once for so many milliseconds.
   */
  floor(loops: number, ms: number): Promise<Floor>;
  /** Datasets that look like volumes, until there are `count`. */
  fill(count: number): Promise<void>;
}

export interface Floor {
  readonly pairs: number;
  readonly wallMs: number;
}

export interface Seen {
  readonly roundTrips: number;
  /** Without their folders: `zfs create …`. */
  readonly commands: readonly string[];
}

const port = 2222;
const sshdLog = '/run/sshd-bench.log';
const scriptLog = '/run/scripts.log';
const commandLog = '/run/commands.log';
/** What volumes are made with. They are in two places, of which `/sbin` is a link to `/usr/sbin`. */
const watched = ['/usr/sbin/zfs', '/usr/sbin/zpool', '/usr/bin/chmod', '/usr/bin/chown'];

export async function openStorage(): Promise<Storage> {
  const guest = await boot('zfsbench', { disks: [16 * 2 ** 30] });
  const kernel = await kernelOf(guest.name);
  await createPool(guest);
  await startNfsServer(guest);
  await guest.run(`set -e
    zfs create ${parent}
    setsid -f /usr/sbin/sshd -D -p ${port} -o LogLevel=VERBOSE -E ${sshdLog} >/dev/null 2>&1 </dev/null
    until ss -Htln 'sport = :${port}' | grep -q .; do sleep 0.1; done`);
  const { image } = await labFiles();
  let filled = 0;
  return {
    guest,
    port,
    keyFile: join(image, 'key'),
    cpuMs: () => cpuMs(kernel),
    async watch(work) {
      // A session in which script after script is run gets them through a `cat`: it ends, and the next one is a witness.
      await guest.run(`set -e; : >${sshdLog}; : >${commandLog}; : >${scriptLog}
${watched.map(wrap).join('\n')}
mv /usr/bin/cat /usr/bin/cat.watched
printf '#!/bin/sh\\n[ $# != 0 ] || exec tee -a ${scriptLog}\\nexec cat.watched "$@"\\n' >/usr/bin/cat.new
/usr/bin/install -m 755 /usr/bin/cat.new /usr/bin/cat; rm /usr/bin/cat.new
pkill -KILL -xf '/bin/sh -s' || true
while pgrep -xf '/bin/sh -s' >/dev/null; do sleep 0.1; done; sleep 0.5`);
      try {
        await work();
      } finally {
        await guest.run([...watched, '/usr/bin/cat'].map((path) => `mv -f ${path}.watched ${path}`).join('\n'));
      }
      const sessions = await guest.run(`grep -c 'Starting session: command' ${sshdLog} || true`);
      const scripts = await guest.run(`grep -cxF ') </dev/null' ${scriptLog} || true`);
      const commands = await guest.run(`cat ${commandLog}`);
      return { roundTrips: Number(scripts) || Number(sessions), commands: commands.split('\n').filter(Boolean) };
    },
    async floor(loops, ms) {
      const said = await guest.run(`
        now() { echo \${EPOCHREALTIME//[.,]/}; }
        begun=$(now) end=$(($(now) + ${ms * 1000}))
        loop() {
          n=0
          while [ \${EPOCHREALTIME//[.,]/} -lt $end ]; do
            zfs create -o sharenfs=${shareOptions} ${parent}/floor-$1-$n && zfs destroy ${parent}/floor-$1-$n || exit
            n=$((n + 1))
          done
          echo $n
        }
        for one in $(seq ${loops}); do loop $one & done
        wait; echo $((($(now) - begun) / 1000))`);
      const numbers = said.trim().split('\n').map(Number);
      const wallMs = numbers.pop() ?? 0;
      if (numbers.length !== loops) throw new Error(`the floor could not be measured: ${said}`);
      return { pairs: numbers.reduce((all, one) => all + one, 0), wallMs };
    },
    async fill(count) {
      // Not mounted, not shared: they are only there to be listed.
      await guest.run(
        `for number in $(seq ${filled + 1} ${count}); do zfs create -u ${markOptions} ${parent}/many-$number || exit; done`,
        { timeoutMs: 1_200_000 },
      );
      filled = count;
    },
  };
}

const marks = {
  refquota: '64M',
  'democratic-csi:csi_volume_name': 'many',
  'democratic-csi:managed_resource': 'true',
  'democratic-csi:provision_success': 'true',
  'democratic-csi:csi_share_volume_context': '{"node_attach_driver":"nfs","server":"10.0.2.15","share":"/tank/v/many"}',
};

const markOptions = Object.entries(marks)
  .map(([name, value]) => `-o '${name}=${value}'`)
  .join(' ');

/** Its program gets a wrapper that writes its command line down. */
function wrap(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return `mv ${path} ${path}.watched
printf '#!/bin/sh\\necho "${name} $*" >>${commandLog}\\nexec ${path}.watched "$@"\\n' >${path}.new
/usr/bin/install -m 755 ${path}.new ${path}; rm ${path}.new`;
}

/** A guest's kernel is a process of this machine. */
async function kernelOf(name: string): Promise<number> {
  for (const pid of await processTree(process.pid)) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (line.startsWith(`/linux\0umid=${name}\0`)) return pid;
  }
  throw new Error(`the kernel of ${name} is not among the processes of this one`);
}
