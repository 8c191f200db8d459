import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** A network of its own for guests, in which this machine is 10.0.2.2. It goes with this process at the latest. */
export interface Network {
  /** Goes before a command line that is to run in it. */
  readonly inside: readonly string[];
  /** The next guest's address. */
  nextAddress(): string;
  close(): Promise<void>;
}

export async function openNetwork(): Promise<Network> {
  const script = [
    'ip link set lo up',
    'ip link add guests type bridge',
    'ip address add 10.0.2.2/24 dev guests',
    'ip -6 address add fd00::2/64 dev guests nodad',
    'ip link set guests up',
    'echo ready',
    'exec sleep infinity',
  ].join(' && ');
  const keeper = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', 'sh', '-c', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const ended = once(keeper, 'close');
  const ready = await Promise.race([once(keeper.stdout, 'data'), ended.then(() => undefined)]);
  if (!ready) throw new Error('a network namespace cannot be made');
  let last = 14;
  return {
    inside: ['nsenter', `--net=/proc/${keeper.pid}/ns/net`],
    nextAddress: () => `10.0.2.${++last}`,
    async close() {
      keeper.kill('SIGKILL');
      await ended;
    },
  };
}
