import { defaultHostSettings } from '../../../backends/exec/host-settings.ts';
import { withLock } from '../../keyed-lock.ts';
import { poll } from '../../poll.ts';
import type { NodeTools } from '../../tools.ts';
import type { Attacher, Identity, MakeAttacher } from '../attacher.ts';
import { connectAll } from './connect.ts';
import { disconnect } from './disconnect.ts';
import { namespaceDevice } from './namespace-device.ts';
import { kernelPlaces, type NvmePlaces } from './places.ts';
import { rescan } from './rescan.ts';
import { namespaceOf, readSubsystem } from './subsystem.ts';
import { parseNamespaceName, parseTarget } from './target.ts';

/** Milliseconds for the new size of a namespace to be seen. */
const resizeMs = 10_000;

/**
 * A namespace of an NVMe subsystem, over TCP, RDMA or Fibre Channel. The context has `nqn`, `nsid`, and `transport` or `transports`; it may have the
 * namespace's `uuid` or `nguid`, which is then checked.
 */
export const nvmeof: MakeAttacher = (tools) =>
  attacherWith(tools, { ...kernelPlaces, hostRoot: defaultHostSettings.root });

export function attacherWith(tools: NodeTools, places: NvmePlaces): Attacher {
  const connector = { tools, places };
  // Connections are those of all namespaces of a subsystem.
  const lockOf = ({ nqn }: { readonly nqn: string }) => `nvme subsystem ${nqn}`;
  const identity = ({ nqn, nsid }: { readonly nqn: string; readonly nsid: string }): Identity => ({ nqn, nsid });
  return {
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
      if (!found) return;
      const read = () => readSubsystem(places.sysfs, found.nqn);
      const size = async () => (await read()).disks.find(({ nsid }) => nsid === found.nsid)?.bytes ?? 0;
      const before = await size();
      if (wantedBytes !== undefined && before >= wantedBytes) return;
      await rescan(call, await read());
      const isSeen = (bytes: number) => (wantedBytes === undefined ? bytes !== before : bytes >= wantedBytes);
      // Where nobody says what size it should have, there may be nothing to wait for.
      const limit = wantedBytes === undefined ? 1000 : resizeMs;
      await poll(call, limit, async () => isSeen(await size()) || undefined);
    },
  };
}
