import type { CallContext } from '../core/call.ts';
import { isDeviceGone } from './devices.ts';
import { mayHang } from './file-system-kind.ts';
import type { Mount } from './mount-table.ts';
import { isProvenAlive } from './proven-alive.ts';
import { askRemote } from './remote-usage.ts';
import { servers } from './servers.ts';
import { serverNameOf } from './share-source.ts';
import type { NodeTools } from './tools.ts';

/**
 * Why nothing can be done with a mount any more; undefined: it is alive. Its directory was removed, its device is gone, or its server does not
 * know it any more (asked by a child with a time limit). Throws UNAVAILABLE when its server does not answer: then the mount is good again as
 * soon as the server is.
 */
export async function whyDead(call: CallContext, tools: NodeTools, mount: Mount): Promise<string | undefined> {
  if (mount.root.endsWith('//deleted')) return `${mount.root.slice(0, -'//deleted'.length)} was removed below it`;
  if (mayHang(mount)) return await whyUnknown(call, tools, mount);
  if (await isDiskGone(mount)) return `its device ${mount.source} is gone`;
  return undefined;
}

/** btrfs has an anonymous device number, but says itself what became of its device. */
async function isDiskGone({ device, fsType, source }: Mount): Promise<boolean> {
  if (!device.startsWith('0:')) return await isDeviceGone(device);
  return fsType === 'btrfs' && source === '<missing disk>';
}

/** As {@link whyDead}, but a server that has answered moments ago, and to all since, is not asked again. */
export async function whyDeadUnlessSeen(
  call: CallContext,
  tools: NodeTools,
  mount: Mount,
): Promise<string | undefined> {
  return isProvenAlive(mount) && !servers.isSilent(serverNameOf(mount)) ? undefined : await whyDead(call, tools, mount);
}

async function whyUnknown(call: CallContext, tools: NodeTools, mount: Mount): Promise<string | undefined> {
  const answer = await askRemote(call, tools, mount);
  return 'dead' in answer ? `${mount.source} is out of reach: ${answer.dead}` : undefined;
}
