import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { sequences } from './sequences.ts';
import type { Storage } from './storage.ts';
import type { ZfsSubject } from './subject.ts';

/** democratic-csi's commands without democratic-csi: what they take at the least. */
export async function sequenceSubject({ guest, port, keyFile }: Storage): Promise<ZfsSubject> {
  const script = join(import.meta.dirname, 'sequence-child.ts');
  const argv = [...guest.network.inside, process.execPath, script, guest.address, String(port), keyFile];
  const child = spawn(argv[0] ?? '', argv.slice(1), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit');
  const waiting = new Map<number, (error: string | undefined) => void>();
  let last = 0;
  const ready = new Promise<void>((resolve) => {
    child.on('message', (message: 'ready' | { readonly id: number; readonly error?: string }) => {
      if (message === 'ready') return resolve();
      waiting.get(message.id)?.(message.error);
      waiting.delete(message.id);
    });
  });
  const isReady = await Promise.race([ready.then(() => true), ended.then(() => false)]);
  if (!isReady) throw new Error('the commands’ connection was not made');
  void ended.then(() => {
    for (const done of waiting.values()) done('the connection has ended');
  });
  const run = (commands: readonly string[]) =>
    new Promise<void>((resolve, reject) => {
      const id = ++last;
      waiting.set(id, (error) => (error === undefined ? resolve() : reject(new Error(error))));
      child.send({ id, commands });
    });
  const create = (volume: string) => run(sequences.create(volume, guest.address));
  return {
    name: 'its commands',
    pid: child.pid ?? 0,
    create,
    createAgain: create,
    remove: (volume) => run(sequences.remove(volume)),
    capacity: () => run(sequences.capacity),
    list: () => run(sequences.list),
    async close() {
      child.disconnect();
      await ended;
    },
  };
}
