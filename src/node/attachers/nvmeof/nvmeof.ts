import { defaultHostSettings } from '../../../backends/exec/host-settings.ts';
import type { CallContext } from '../../../core/call.ts';
import { withLock } from '../../keyed-lock.ts';
import { multipathOf, resizeMultipath } from '../../multipath.ts';
import { poll } from '../../poll.ts';
import type { NodeTools } from '../../tools.ts';
import type { Attacher, Identity, MakeAttacher } from '../attacher.ts';
import { type Connector, connectAll } from './connect.ts';
import { disconnect } from './disconnect.ts';
import { namespaceDevice } from './namespace-device.ts';
import { kernelPlaces, type NvmePlaces } from './places.ts';
import { rescan } from './rescan.ts';
import { namespaceOf, readSubsystem } from './subsystem.ts';
import { type NamespaceName, parseNamespaceName, parseTarget } from './target.ts';

/** Milliseconds for the new size of a namespace to be seen. */
const resizeMs = 10_000;

/**
 * A namespace of an NVMe subsystem, over TCP, RDMA or Fibre Channel. The context has `nqn`, `nsid`, and `transport` or `transports`; it may have the
 * namespace's `uuid` or `nguid`, which is then checked.
 */
export const nvmeof: MakeAttacher = (tools) =>
  nvmeofAt(tools, { ...kernelPlaces, hostRoot: tools.hostRoot ?? defaultHostSettings.root });

export function nvmeofAt(tools: NodeTools, places: NvmePlaces): Attacher {
  const connector = { tools, places };
  // Connections are those of all namespaces of a subsystem.
  const lockOf = ({ nqn }: { readonly nqn: string }) => `nvme subsystem ${nqn}`;
  const identity = ({ nqn, nsid }: { readonly nqn: string; readonly nsid: string }): Identity => ({ nqn, nsid });
  return {
    reachedByMany: true,
    identityOf: ({ context }) => identity(parseTarget(context)),
    async attach(call, { context }) {
      const target = parseTarget(context);
      await withLock(lockOf(target), call.signal, () => connectAll(call, connector, target, context));
      return { type: 'device', path: await namespaceDevice(call, connector, target) };
    },
    async identify(device) {
      const found = await namespaceOf(places.sysfs, device);
      return found && identity(found);
    },
    async detach(call, wanted, others = async () => []) {
      const name = parseNamespaceName(wanted);
      await withLock(lockOf(name), call.signal, () => disconnect(call, connector, name, others));
    },
    async rescan(call, device, wantedBytes) {
      const found = await namespaceOf(places.sysfs, device);
      if (found) await resize(call, connector, found, wantedBytes);
    },
  };
}

async function resize(
  call: CallContext,
  { tools, places }: Connector,
  { nqn, nsid }: NamespaceName,
  wantedBytes: number | undefined,
): Promise<void> {
  const read = () => readSubsystem(places.sysfs, nqn);
  const disks = async () => (await read()).disks.filter((disk) => disk.nsid === nsid);
  // Of several paths, all have to see it.
  const size = async () => Math.min(...(await disks()).map(({ bytes }) => bytes));
  const before = await size();
  if (wantedBytes === undefined || before < wantedBytes) {
    await rescan(call, await read());
    const isSeen = (bytes: number) => (wantedBytes === undefined ? bytes !== before : bytes >= wantedBytes);
    // Where nobody says what size it should have, there may be nothing to wait for.
    const limit = wantedBytes === undefined ? 1000 : resizeMs;
    await poll(call, limit, async () => isSeen(await size()) || undefined);
  }
  const names = (await disks()).map(({ name }) => name);
  const map = await multipathOf(places.sysfs, names);
  if (map) await resizeMultipath(call, tools, map, await size());
}
