/** The paths of the volume plugin protocol, and what each of them answers. */
import type { CallContext } from '../../core/call.ts';
import { type DockerMessage, needed } from './messages.ts';
import type { VolumeDriver } from './workshop.ts';

export interface DockerEndpoint {
  /** Its name in the log and the metrics. */
  readonly method: string;
  /** Asked by Docker of its own accord, again and again. */
  readonly routine: boolean;
  /** Milliseconds; undefined: the operation has limits of its own. */
  readonly limitMs?: number;
  readonly answer: (volumes: VolumeDriver, call: CallContext, message: DockerMessage) => Promise<object>;
}

/** Docker waits a minute for these. */
const reading = { routine: true, limitMs: 30_000 } as const;
const changing = { routine: false } as const;

export const dockerEndpoints: Readonly<Record<string, DockerEndpoint>> = {
  '/Plugin.Activate': {
    method: 'Plugin.Activate',
    ...reading,
    answer: async () => ({ Implements: ['VolumeDriver'] }),
  },
  '/VolumeDriver.Capabilities': {
    method: 'VolumeDriver.Capabilities',
    ...reading,
    answer: async (volumes, call) => ({ Capabilities: { Scope: await volumes.scope(call) } }),
  },
  '/VolumeDriver.Create': {
    method: 'VolumeDriver.Create',
    ...changing,
    async answer(volumes, call, message) {
      await volumes.create(call, needed(message, 'Name'), message.Opts ?? {});
      return {};
    },
  },
  '/VolumeDriver.Remove': {
    method: 'VolumeDriver.Remove',
    ...changing,
    async answer(volumes, call, message) {
      await volumes.remove(call, needed(message, 'Name'));
      return {};
    },
  },
  '/VolumeDriver.Get': {
    method: 'VolumeDriver.Get',
    ...reading,
    async answer(volumes, call, message) {
      const name = needed(message, 'Name');
      const volume = await volumes.get(call, name);
      // Docker asks for every name that it comes across, so it is no failure worth a line in the log.
      return volume ? { Volume: volume } : { Err: `there is no volume ${JSON.stringify(name)}` };
    },
  },
  '/VolumeDriver.List': {
    method: 'VolumeDriver.List',
    ...reading,
    answer: async (volumes, call) => ({ Volumes: await volumes.list(call) }),
  },
  '/VolumeDriver.Path': {
    method: 'VolumeDriver.Path',
    ...reading,
    answer: async (volumes, call, message) => ({
      Mountpoint: (await volumes.path(call, needed(message, 'Name'))) ?? '',
    }),
  },
  '/VolumeDriver.Mount': {
    method: 'VolumeDriver.Mount',
    ...changing,
    answer: async (volumes, call, message) => ({
      Mountpoint: await volumes.mount(call, needed(message, 'Name'), needed(message, 'ID')),
    }),
  },
  '/VolumeDriver.Unmount': {
    method: 'VolumeDriver.Unmount',
    ...changing,
    async answer(volumes, call, message) {
      await volumes.unmount(call, needed(message, 'Name'), needed(message, 'ID'));
      return {};
    },
  },
};
