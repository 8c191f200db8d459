/** A machine with a table of mounts that its programs change, and a controller on it that works on a share. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { CommandFailed } from '../../src/backends/exec/command-failed.ts';
import type { Command, RunCommand } from '../../src/backends/exec/run.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import { createLogger, silentLogger } from '../../src/core/logger.ts';
import { localFiles } from '../../src/drivers/directory/files.ts';
import { createShareGuard, type ShareGuard } from '../../src/drivers/directory/share-guard.ts';
import { createShareMount, type ShareMountOptions } from '../../src/drivers/directory/share-mount.ts';
import { createShareSight } from '../../src/drivers/directory/share-sight.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';
import { hostKey } from '../../src/node/share-source.ts';

export const rootLine = '1 0 8:1 / / rw - ext4 /dev/sda1 rw';

/** A machine with a table of mounts that its programs change. */
export class Machine {
  readonly lines = [rootLine];
  readonly commands: Command[] = [];
  private last = 1;
  failing: string | undefined;
  readonly readTable = async () => parseMountTable(this.lines.join('\n'));

  readonly run: RunCommand = async (_call, command) => {
    this.commands.push(command);
    const { program, args } = command;
    const ok = { code: 0, stdout: '', stderr: '' };
    if (this.failing !== undefined) {
      throw new CommandFailed({ program, exitCode: 32, signal: null, stdout: '', stderr: this.failing });
    }
    const place = args.at(-1) ?? '';
    const at = this.lines.findLastIndex((line) => line.split(' ')[4] === place);
    if (program === 'umount' && at > 0) this.lines.splice(at, 1);
    if (program === 'stat') return { ...ok, stdout: '4096 1000 500 500 100 50\n' };
    if (program === 'mount') this.mount(args.at(-2) ?? '', place, args[args.indexOf('-t') + 1]);
    return ok;
  };

  /** `root`: the folder of the file system that is seen there. */
  mount(source: string, place: string, type = 'nfs', { root = '/', options = 'rw' } = {}): void {
    this.lines.push(`${++this.last} 1 0:${this.last} ${root} ${place} rw - ${type} ${source} ${options}`);
  }

  ran(): string[] {
    return this.commands.map(({ program, args }) => `${program} ${args.join(' ')}`);
  }
}

export async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'share-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface Site {
  readonly machine: Machine;
  readonly base: string;
  readonly guard: ShareGuard;
  readonly lines: string[];
}

export async function makeSite(
  t: TestContext,
  host = 'nas',
  mount?: Partial<ShareMountOptions>,
  sight = sightOf(host),
): Promise<Site> {
  const base = await makeFolder(t);
  const machine = new Machine();
  const lines: string[] = [];
  const log = createLogger({ level: 'info', format: 'text', write: (line) => lines.push(line) });
  const { readTable } = machine;
  const options = { base, host, title: `${host}:/x`, sight, files: localFiles, readTable, log };
  const guard = createShareGuard({
    ...options,
    mount: mount && { ...mountOf(machine, base, mount), hold: async () => {} },
  });
  t.after(() => guard.close());
  return { machine, base, guard, lines };
}

export function mountOf(machine: Machine, place: string, more: Partial<ShareMountOptions> = {}) {
  return createShareMount({
    place,
    context: { node_attach_driver: 'nfs', server: 'nas', share: '/x' },
    flags: ['nfsvers=4.2'],
    credentials: undefined,
    title: 'nas:/x',
    sight: sightOf('nas'),
    tools: { run: machine.run, limits: defaultTimeLimits, settings: {}, readTable: machine.readTable },
    log: silentLogger,
    ...more,
  });
}

export function sightOf(host: string, path = '/x', source?: string) {
  return createShareSight({ family: 'nfs', host: hostKey(host), path }, 'nfs', source);
}
