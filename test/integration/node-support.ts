/** For tests of the node plane: a private mount namespace, a folder, a node plane that counts its commands, loop devices. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { RunCommand } from '../../src/backends/exec/run.ts';
import { createRunner, type RunnerOptions } from '../../src/backends/exec/runner.ts';
import { type CallContext, detachedContext } from '../../src/core/call.ts';
import type { PublishRequest, StageRequest, WholeNodeOperations } from '../../src/core/driver.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { MountCapability, VolumeCapability, VolumeContext } from '../../src/core/volume.ts';
import { type Mount, readMountTable } from '../../src/node/mount-table.ts';
import { createNodePlane, type NodePlaneOptions } from '../../src/node/plane.ts';

/**
 * Runs the calling test file again in a mount namespace of its own, whose mounts vanish with it, and ends this process with its result.
 * Returns at once when this process is in it already.
 */
export function enterMountNamespace(url: string): void {
  if (process.env.SWITCHBOARD_TEST_NAMESPACE === 'yes') return;
  const args = ['--mount', '--propagation', 'private', process.execPath, ...process.execArgv, fileURLToPath(url)];
  const env = { ...process.env, SWITCHBOARD_TEST_NAMESPACE: 'yes' };
  const { status, error } = spawnSync('unshare', args, { stdio: 'inherit', env });
  if (error) throw error;
  process.exit(status ?? 1);
}

/** Runs a host program of the test itself and gives its output. */
export function host(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export const call: CallContext = detachedContext(silentLogger);

export const mountCapability: MountCapability = {
  type: 'mount',
  mode: 'SINGLE_NODE_WRITER',
  fsType: '',
  mountFlags: [],
  mountGroup: '',
};
export const blockCapability: VolumeCapability = { type: 'block', mode: 'SINGLE_NODE_WRITER' };

export interface Bench {
  readonly root: string;
  /** Where records of what is staged are kept, unless the options say otherwise. */
  readonly state: string;
  readonly node: WholeNodeOperations;
  /** Command lines run since the last {@link Bench.forget}. */
  readonly commands: string[];
  forget(): void;
  path(name: string): string;
  stage(more?: Partial<StageRequest>): Promise<void>;
  publish(target: string, more?: Partial<PublishRequest>): Promise<void>;
  unpublish(target: string): Promise<void>;
  unstage(stagingPath?: string): Promise<void>;
  /** Mounts within the folder, at paths relative to it. */
  mounts(): Promise<readonly string[]>;
  mountAt(name: string): Promise<Mount | undefined>;
}

export interface BenchOptions extends Partial<NodePlaneOptions> {
  readonly context?: VolumeContext;
  readonly runner?: RunnerOptions;
}

/** A folder with a hostpath volume in `vol` (unless `context` says otherwise), staged at `stage`, published wherever. */
export async function bench(t: TestContext, options: BenchOptions = {}): Promise<Bench> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'node-')));
  const state = `${root}.state`;
  t.after(async () => {
    await unmountBelow(root);
    for (const folder of [root, state]) await rm(folder, { recursive: true, force: true });
  });
  const path = (name: string) => join(root, name);
  await mkdir(path('vol'));
  await writeFile(path('vol/data'), 'precious');

  const commands: string[] = [];
  const runner = createRunner(options.runner);
  const run: RunCommand = (context, command) => {
    commands.push([command.program, ...command.args].join(' '));
    return runner(context, command);
  };
  const node = createNodePlane({ info: { nodeId: 'n1' }, run, stateDirectory: state, ...options });
  const context = options.context ?? { node_attach_driver: 'hostpath', path: path('vol') };
  const common = { volumeId: 'v1', capability: mountCapability, context, publishContext: {} };
  const table = async () => (await readMountTable()).mounts.filter((mount) => mount.mountPoint.startsWith(`${root}/`));
  return {
    root,
    state,
    node,
    commands,
    forget: () => void commands.splice(0),
    path,
    stage: (more) => node.stage(call, { ...common, stagingPath: path('stage'), ...more }),
    publish: (target, more) =>
      node.publish(call, { ...common, targetPath: path(target), stagingPath: path('stage'), readonly: false, ...more }),
    unpublish: (target) => node.unpublish(call, { volumeId: 'v1', targetPath: path(target) }),
    unstage: (stagingPath = path('stage')) => node.unstage(call, { volumeId: 'v1', stagingPath }),
    mounts: async () => (await table()).map((mount) => mount.mountPoint.slice(root.length + 1)),
    mountAt: async (name) => (await readMountTable()).at(path(name)),
  };
}

async function unmountBelow(root: string): Promise<void> {
  const { mounts } = await readMountTable();
  const below = mounts.filter((mount) => mount.mountPoint.startsWith(`${root}/`)).reverse();
  for (const mount of below) spawnSync('umount', ['-l', mount.mountPoint]);
}

/** A loop device of `size` bytes, detached at the end of the test. */
export async function loopDevice(t: TestContext, size: number): Promise<{ device: string; file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'node-loop-'));
  const file = join(folder, 'disk');
  await writeFile(file, '');
  await truncate(file, size);
  const device = host('losetup', '--find', '--show', file).trim();
  t.after(async () => {
    const { mounts } = await readMountTable();
    for (const mount of mounts.filter((one) => one.source === device).reverse())
      spawnSync('umount', ['-l', mount.mountPoint]);
    spawnSync('losetup', ['--detach', device]);
    await rm(folder, { recursive: true, force: true });
  });
  return { device, file };
}
