/** A stand-in for storage that is attached over a network: a file that becomes a loop device, and is one until it is detached. */
import { readFile, realpath } from 'node:fs/promises';
import { basename } from 'node:path';
import { CallError } from '../../src/core/errors.ts';
import type { MakeAttacher } from '../../src/node/attachers/attacher.ts';

/** Its volumes have the `file` in their context. It does nothing that is not the device's own: two volumes share nothing. */
export const loopAttacher: MakeAttacher = ({ run, limits }) => {
  const losetup = async (call: Parameters<typeof run>[0], ...args: string[]) =>
    (await run(call, { program: 'losetup', args, timeoutMs: limits.mount })).stdout.trim();
  const devicesOf = async (call: Parameters<typeof run>[0], file: string) =>
    (await losetup(call, '--associated', file, '--noheadings', '--raw', '--output', 'NAME'))
      .split('\n')
      .filter(Boolean);
  const fileOf = (file: string | undefined) => {
    if (file) return file;
    throw new CallError('INVALID_ARGUMENT', 'the volume context has no `file`');
  };
  return {
    identityOf: ({ context }) => ({ file: fileOf(context.file) }),
    async attach(call, { context }) {
      const file = fileOf(context.file);
      const [path = await losetup(call, '--find', '--show', file)] = await devicesOf(call, file);
      return { type: 'device', path };
    },
    async identify(device) {
      const name = basename(await realpath(`/sys/dev/block/${device}`).catch(() => ''));
      const file = await readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => undefined);
      return file === undefined ? undefined : { file: file.trim() };
    },
    async detach(call, { file = '' }) {
      for (const device of await devicesOf(call, file)) await losetup(call, '--detach', device);
    },
  };
};
