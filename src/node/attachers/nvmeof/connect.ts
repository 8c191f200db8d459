/** Connections to a subsystem: those that are missing are made, as nvme-connect(1) makes them, by a line written to /dev/nvme-fabrics. */
import { readFile } from 'node:fs/promises';
import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import { type CallContext, reasonOf } from '../../../core/call.ts';
import { asCallError, CallError } from '../../../core/errors.ts';
import type { VolumeContext } from '../../../core/volume.ts';
import { isMultipathed } from '../../multipath.ts';
import { nodeSecret } from '../../node-secret.ts';
import type { NodeTools } from '../../tools.ts';
import { addressesOf, isSameAddress } from './addresses.ts';
import { answering } from './answering.ts';
import { isPlainValue } from './connect-options.ts';
import { hostIdentity, idOf } from './host-identity.ts';
import type { NvmePlaces } from './places.ts';
import { type Controller, readSubsystem } from './subsystem.ts';
import type { Target } from './target.ts';
import type { Transport } from './transport.ts';

/** Milliseconds that other transports get once one is connected: what is there answers at once. */
const graceMs = 2000;

export interface Connector {
  readonly tools: NodeTools;
  readonly places: NvmePlaces;
}

/**
 * Makes the connections of a target that are missing. One that fails is told to the log while another is there. Throws UNAVAILABLE, naming all,
 * when there is none at all.
 */
export async function connectAll(
  call: CallContext,
  connector: Connector,
  target: Target,
  context: VolumeContext,
): Promise<void> {
  const { controllers } = await readSubsystem(connector.places.sysfs, target.nqn);
  const connect = (limited: CallContext, transport: Transport) =>
    connectOne(limited, connector, target, context, transport, controllers);
  const all = await isJoined(call, connector, target);
  if (!all && controllers.some(isAlive)) return;
  const results = await (all ? connectEach : connectFirst)(call, target.transports, connect);
  if (call.signal.aborted) throw reasonOf(call.signal);

  const failed = results.flatMap((result, index) => {
    if (result.status === 'fulfilled') return [];
    return [{ title: target.transports[index]?.title, error: asCallError(result.reason) }];
  });
  // Somebody else may have connected it by another way.
  const isThere = controllers.some(({ state }) => state === 'live');
  if (failed.length === target.transports.length && !isThere) throw allFailed(target, failed);
  for (const { title, error } of failed) {
    call.log.warn('one of the ways to a volume is not there', {
      nqn: target.nqn,
      transport: title,
      why: error.message,
    });
  }
}

type Connect = (call: CallContext, transport: Transport) => Promise<void>;

async function connectEach(
  call: CallContext,
  transports: readonly Transport[],
  connect: Connect,
): Promise<readonly PromiseSettledResult<void>[]> {
  const enough = new AbortController();
  const limited = { ...call, signal: AbortSignal.any([call.signal, enough.signal]) };
  const late = new CallError('UNAVAILABLE', 'it does not answer');
  let timer: NodeJS.Timeout | undefined;
  const tries = transports.map(async (transport) => {
    await connect(limited, transport);
    timer ??= setTimeout(() => enough.abort(late), graceMs);
  });
  const results = await Promise.allSettled(tries);
  clearTimeout(timer);
  return results;
}

async function connectFirst(
  call: CallContext,
  transports: readonly Transport[],
  connect: Connect,
): Promise<readonly PromiseSettledResult<void>[]> {
  const results: PromiseSettledResult<void>[] = [];
  for (const transport of transports) {
    const [result] = await Promise.allSettled([connect(call, transport)]);
    results.push(result);
    if (result.status === 'fulfilled') break;
  }
  return results;
}

/**
 * Whether the disks of several connections become one: by the kernel itself, or by multipathd. Where they would not, there is to be one connection
 * only, for two disks that are the same one must not be mounted as two.
 */
async function isJoined(call: CallContext, { tools, places }: Connector, { transports }: Target): Promise<boolean> {
  if (transports.length < 2) return true;
  const file = `${places.sysfs}/module/nvme_core/parameters/multipath`;
  const read = () => readFile(file, 'utf8').catch(() => undefined);
  let own = await read();
  if (own === undefined) {
    await fabricsDevice(call, { tools, places });
    own = await read();
  }
  // Kernels without the parameter have no multipath of their own.
  return own?.trim() === 'Y' || (await isMultipathed(call, tools));
}

function allFailed(
  { nqn }: Target,
  failed: readonly { readonly title: string | undefined; readonly error: CallError }[],
): CallError {
  // What every one of them would need is said once.
  const setup = failed.find(({ error }) => error.code === 'FAILED_PRECONDITION' || error.code === 'INVALID_ARGUMENT');
  if (setup) return setup.error;
  const why = failed.map(({ title, error }) => `${title}: ${error.message}`).join('; ');
  return new CallError('UNAVAILABLE', `${nqn} cannot be connected: ${why}`);
}

async function connectOne(
  call: CallContext,
  connector: Connector,
  target: Target,
  context: VolumeContext,
  transport: Transport,
  controllers: readonly Controller[],
): Promise<void> {
  const addresses = await addressesOf(call, transport);
  if (controllers.some((one) => isAlive(one) && leadsThere(one, transport, addresses))) return;
  const address = await chooseAddress(call, transport, addresses);
  const line = await connectLine(call, connector.places, target, context, transport, address);
  await call.waitingFor(`the connection to ${transport.title}`, () => write(call, connector, target, line));
}

/** One that is being made anew is the kernel's to bring back; only what is ending is none any more. */
function isAlive({ state }: Controller): boolean {
  return !/^(deleting|dead)/.test(state);
}

function leadsThere({ transport, address }: Controller, wanted: Transport, addresses: readonly string[]): boolean {
  const there = address.get('traddr') ?? '';
  const isFrom = ['host_traddr', 'host_iface'].every((name) => {
    const from = wanted.options.get(name);
    return typeof from !== 'string' || isSameAddress(from, address.get(name) ?? '');
  });
  const isPort = wanted.port === undefined || wanted.port === address.get('trsvcid');
  return transport === wanted.type && isPort && isFrom && addresses.some((one) => isSameAddress(one, there));
}

async function chooseAddress(call: CallContext, transport: Transport, addresses: readonly string[]): Promise<string> {
  const { type, port, options } = transport;
  const from = options.get('host_traddr');
  // Nothing else answers at a port of RDMA or Fibre Channel, and a way by a certain interface is not ours to choose.
  if (type !== 'tcp' || port === undefined || options.has('host_iface')) return addresses[0] ?? transport.host;
  const tls = options.has('tls') || options.has('concat');
  return await answering(call.signal, addresses, { port, tls, from: typeof from === 'string' ? from : undefined });
}

async function connectLine(
  call: CallContext,
  places: NvmePlaces,
  { nqn }: Target,
  context: VolumeContext,
  transport: Transport,
  address: string,
): Promise<string> {
  const options = new Map<string, string | true>([
    ['transport', transport.type],
    ['traddr', address],
    ...(transport.port === undefined ? [] : ([['trsvcid', transport.port]] as const)),
    ['nqn', nqn],
  ]);
  const named = transport.options.get('hostnqn');
  const host = typeof named === 'string' ? { nqn: named, id: idOf(named) } : await hostIdentity(places);
  options.set('hostnqn', host.nqn).set('hostid', host.id);
  for (const name of ['dhchap-secret', 'dhchap-ctrl-secret']) {
    const secret = nodeSecret(call.secrets, context, name);
    if (!secret) continue;
    if (!isPlainValue(secret))
      throw new CallError('INVALID_ARGUMENT', `the secret ${name} is not a DH-HMAC-CHAP secret`);
    options.set(name.replaceAll('-', '_'), secret);
  }
  for (const [name, value] of transport.options) options.set(name, value);
  return [...options].map(([name, value]) => (value === true ? name : `${name}=${value}`)).join(',');
}

/** By a child: the kernel answers when the connection is made, or was given up. The line may have secrets, so it is no argument. */
async function write(call: CallContext, connector: Connector, target: Target, line: string): Promise<void> {
  const device = await fabricsDevice(call, connector);
  const args = [`of=${device}`, 'bs=64k', 'iflag=fullblock', 'conv=notrunc', 'status=none'];
  try {
    const { tools } = connector;
    await tools.run(call, { program: 'dd', args, input: line, timeoutMs: tools.limits.nvmeof });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    // Somebody else connected it meanwhile.
    if (/already in progress/i.test(error.stderr)) return;
    if (/open/.test(error.stderr)) {
      const need = 'it takes CAP_SYS_ADMIN and access to devices (a privileged container)';
      throw new CallError('FAILED_PRECONDITION', `${device} cannot be opened: ${need}`, { cause: error });
    }
    const host = /hostnqn=([^,]*)/.exec(line)?.[1];
    throw new CallError('UNAVAILABLE', explain(error.stderr, target, host), { cause: error });
  }
}

/** Loading its module makes the device; its node only where /dev is the kernel's own. */
async function fabricsDevice(call: CallContext, { tools, places }: Connector): Promise<string> {
  const { fabrics, sysfs } = places;
  if (await places.numberOf(fabrics)) return fabrics;
  const number = () => readFile(`${sysfs}/class/misc/nvme-fabrics/dev`, 'utf8').catch(() => undefined);
  const limit = { timeoutMs: tools.limits.nvmeof };
  if ((await number()) === undefined) await tools.run(call, { program: 'modprobe', args: ['nvme-fabrics'], ...limit });
  if (await places.numberOf(fabrics)) return fabrics;
  const [major, minor] = (await number())?.trim().split(':') ?? [];
  if (major === undefined || minor === undefined) {
    throw new CallError('FAILED_PRECONDITION', `there is no ${fabrics} although the module nvme-fabrics was loaded`);
  }
  await tools.run(call, { program: 'mknod', args: ['-m', '0600', fabrics, 'c', major, minor], ...limit });
  return fabrics;
}

/** `dd: error writing '/dev/nvme-fabrics': Connection refused` */
function explain(said: string, { nqn }: Target, host: string | undefined): string {
  const errno = said.replace(/^dd: [^:]*: /, '');
  if (/input\/output error/i.test(errno)) return `the target refuses: it has no ${nqn}, or does not admit ${host}`;
  if (/temporarily unavailable/i.test(errno)) return 'something answers there, but not as an NVMe target does';
  if (/invalid argument/i.test(errno)) return 'the kernel refuses the options of the connection; `dmesg` tells which';
  if (/permission denied|required key/i.test(errno)) return `authentication failed: ${errno}`;
  return errno;
}
