import { stat } from 'node:fs/promises';
import { CommandFailed } from '../../backends/exec/command-failed.ts';
import { defaultHostSettings } from '../../backends/exec/host-settings.ts';
import type { CallContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { VolumeContext } from '../../core/volume.ts';
import { secretFlags } from '../node-secret.ts';
import { poll } from '../poll.ts';
import type { NodeTools } from '../tools.ts';
import type { MakeAttacher } from './attacher.ts';

/** Milliseconds for udev to make the link of a zvol. */
const linkMs = 10_000;

/**
 * A dataset or zvol of a pool of this node: the context's `zfs_asset_name`. A dataset is mounted by mount(8), so that its mount point belongs to whoever
 * calls: its property `mountpoint` becomes `legacy`. There is nothing to detach.
 */
export const zfsLocal: MakeAttacher = (tools) => ({
  identityOf: ({ context }) => ({ asset: nameOf(context) }),
  async attach(call, { context }) {
    const name = nameOf(context);
    const { type, mountpoint } = await propertiesOf(call, tools, name);
    if (type === 'volume') return { type: 'device', path: await zvolPath(call, tools, name) };
    if (type !== 'filesystem') throw new CallError('INVALID_ARGUMENT', `${name} is a ${type}, not a dataset or zvol`);
    if (mountpoint !== 'legacy') {
      // Every dataset of the pool would inherit it, and be unmounted.
      if (!name.includes('/'))
        throw new CallError('FAILED_PRECONDITION', `${name} is a whole pool: make a dataset in it`);
      call.log.info('a dataset is mounted by its volume from now on', { dataset: name, before: mountpoint });
      await zfs(call, tools, name, ['set', 'mountpoint=legacy', name]);
    }
    return { type: 'mount', source: name, fsType: 'zfs', options: secretFlags(call.secrets, context) };
  },
});

/** zfs(8): letters, digits and `-_.: `; no snapshots. */
function nameOf({ zfs_asset_name: name = '' }: VolumeContext): string {
  const isName = (part: string) => /^[A-Za-z0-9_][\w.: -]*$/.test(part);
  if (name.length < 256 && name.split('/').every(isName)) return name;
  const shown = JSON.stringify(name.slice(0, 100));
  throw new CallError(
    'INVALID_ARGUMENT',
    `the volume context’s zfs_asset_name ${shown} is not the name of a dataset or zvol`,
  );
}

async function propertiesOf(call: CallContext, tools: NodeTools, name: string) {
  const stdout = await zfs(call, tools, name, ['get', '-H', '-p', '-o', 'property,value', 'type,mountpoint', name]);
  const value = (property: string) => new RegExp(`^${property}\\t(.*)$`, 'm').exec(stdout)?.[1] ?? '';
  return { type: value('type'), mountpoint: value('mountpoint') };
}

async function zfs(call: CallContext, tools: NodeTools, name: string, args: readonly string[]): Promise<string> {
  try {
    const command = { program: 'zfs', args, timeoutMs: tools.limits.mount };
    const { stdout } = await call.waitingFor(`\`zfs ${args[0]}\` of ${name}`, () => tools.run(call, command));
    return stdout;
  } catch (error) {
    if (!(error instanceof CommandFailed) || !/does not exist|no such pool/i.test(error.stderr)) throw error;
    throw new CallError('NOT_FOUND', `${name} does not exist on this node`, { cause: error });
  }
}

/** udev's link, which in a container may be in the host's /dev only. */
async function zvolPath(
  call: CallContext,
  { hostRoot = defaultHostSettings.root }: NodeTools,
  name: string,
): Promise<string> {
  const paths = [`/dev/zvol/${name}`, `${hostRoot}/dev/zvol/${name}`];
  const found = await poll(call, linkMs, async () => {
    for (const path of paths) if (await isDevice(path)) return path;
    return undefined;
  });
  if (found !== undefined) return found;
  throw new CallError(
    'FAILED_PRECONDITION',
    `there is no ${paths[0]}: it takes udev, the host’s /dev, and a zvol whose volmode is neither none nor geom`,
  );
}

async function isDevice(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isBlockDevice() ?? false;
}
