/** Folders and processes of one run of the benchmark, and their end. */
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFolder } from '../conformance/leftovers.ts';
import { type Launched, launch } from './launch.ts';
import { openSession, type Session } from './session.ts';
import type { Subject } from './subject.ts';

export interface Workplace {
  readonly root: string;
  /** Starts a plugin in a folder of its own. */
  launch(subject: Subject): Promise<Launched>;
  /** Stops it and removes its folder. */
  end(launched: Launched): Promise<void>;
  /** Starts a plugin, unless it runs already, and connects to it. */
  open(subject: Subject): Promise<Session>;
  /** Ends whatever is still there. */
  close(): Promise<void>;
}

export async function createWorkplace(): Promise<Workplace> {
  const root = await mkdtemp(join(tmpdir(), 'bench-'));
  const running = new Set<Launched>();
  const sessions = new Set<Session>();
  let count = 0;

  async function newFolder(): Promise<string> {
    const folder = join(root, String(count++));
    await mkdir(folder);
    return folder;
  }

  async function launchIn(folder: string, subject: Subject): Promise<Launched> {
    const launched = await launch(subject, folder);
    running.add(launched);
    return launched;
  }

  async function end(launched: Launched): Promise<void> {
    running.delete(launched);
    await launched.program.stop(5000);
    await removeFolder(launched.folder);
  }

  return {
    root,
    launch: async (subject) => launchIn(await newFolder(), subject),
    end,
    async open(subject) {
      const folder = await newFolder();
      const plugin = subject.running ?? (await launchIn(folder, subject)).plugin;
      const session = await openSession(subject, plugin, folder);
      sessions.add(session);
      return session;
    },
    async close() {
      for (const session of sessions) await session.close().catch(() => {});
      for (const launched of [...running]) await end(launched);
      await removeFolder(root);
    },
  };
}
