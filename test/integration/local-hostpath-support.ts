/** A local-hostpath driver on a folder of its own, and file systems on loop devices to put one on. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import * as v from 'valibot';
import type { Command, RunCommand } from '../../src/backends/exec/run.ts';
import { createRunner } from '../../src/backends/exec/runner.ts';
import type { CallContext } from '../../src/core/call.ts';
import { detachedContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { createLogger, silentLogger } from '../../src/core/logger.ts';
import type { SnapshotSpec, VolumeSpec } from '../../src/core/volume.ts';
import { localHostpath } from '../../src/drivers/local-hostpath/type.ts';
import type { DriverEnvironment } from '../../src/drivers/type.ts';

const execute = promisify(execFile);

/** Runs a program of this machine; its standard output. */
export async function sh(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute(program, [...args], { env: { ...process.env, LC_ALL: 'C' } });
  return stdout;
}

export async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'local-hostpath-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A file system of its own in an image file; its mount point. */
export async function mountImage(
  t: TestContext,
  mib: number,
  mkfs: readonly [string, ...string[]],
  options = 'loop',
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'local-hostpath-image-'));
  const image = join(folder, 'image');
  const point = join(folder, 'mounted');
  t.after(async () => {
    await sh('umount', '--quiet', point).catch(() => sh('umount', '--lazy', point).catch(() => {}));
    await rm(folder, { recursive: true, force: true });
  });
  await writeFile(image, '');
  await truncate(image, mib * 2 ** 20);
  await sh(...mkfs, image);
  await sh('mkdir', point);
  await sh('mount', '-o', options, image, point);
  return point;
}

/** Why the tests cannot run: kernels can be built without project quotas. */
export const noProjectQuotas = await readFile('/proc/config.gz').then(
  (config) =>
    /^# CONFIG_(?:XFS_QUOTA|QFMT_V2) is not set/m.test(gunzipSync(config).toString()) &&
    'no project quotas in this kernel (not in CI)',
  () => false,
);
export interface Bench {
  readonly driver: Driver;
  readonly base: string;
  readonly call: CallContext;
  /** Commands that were run. */
  readonly commands: Command[];
  readonly volumes: NonNullable<Driver['volumes']>;
  readonly snapshots: Required<NonNullable<Driver['snapshots']>>;
}

export interface BenchOptions {
  readonly base?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly block?: Readonly<Record<string, unknown>>;
  readonly environment?: Partial<DriverEnvironment>;
  readonly run?: RunCommand;
}

/** A driver with this configuration; the base path does not exist yet unless given. */
export async function makeBench(t: TestContext, options: BenchOptions = {}): Promise<Bench> {
  const base = options.base ?? join(await makeFolder(t), 'base');
  const config = v.parse(localHostpath.schema, {
    driver: 'local-hostpath',
    'local-hostpath': { shareBasePath: base, controllerBasePath: base, ...options.block },
    ...options.config,
  });
  const commands: Command[] = [];
  const run = options.run ?? createRunner();
  await localHostpath.prepare?.(config);
  const driver = localHostpath.create(config, {
    csiName: 'test',
    nodeName: 'node1',
    nodeId: 'node1',
    nodeTopology: { 'example.org/node': 'node1' },
    maxIdBytes: 128,
    run: (call, command) => {
      commands.push(command);
      return run(call, command);
    },
    log: process.env.VERBOSE
      ? createLogger({ level: 'debug', format: 'text', write: (line) => process.stderr.write(line) })
      : silentLogger,
    ...options.environment,
  });
  t.after(() => driver.close());
  const { volumes, snapshots } = driver;
  if (!volumes || !snapshots?.list || !snapshots.get) throw new Error('the driver lacks operations');
  return {
    driver,
    base,
    call: detachedContext(silentLogger),
    commands,
    volumes,
    snapshots: snapshots as Bench['snapshots'],
  };
}

export function volumeSpec(name: string, more: Partial<VolumeSpec> = {}): VolumeSpec {
  return {
    name,
    capacity: {},
    capabilities: [{ type: 'mount', mode: 'SINGLE_NODE_WRITER', fsType: '', mountFlags: [], mountGroup: '' }],
    parameters: {},
    mutableParameters: {},
    topology: { requisite: [], preferred: [] },
    ...more,
  };
}

export function snapshotSpec(name: string, sourceVolumeId: string, more: Partial<SnapshotSpec> = {}): SnapshotSpec {
  return { name, sourceVolumeId, parameters: {}, ...more };
}

/** For assert.rejects: a CallError of this code whose message fits. */
export function failure(code: string, message = /./): { code: string; message: RegExp } {
  return { code, message };
}

/** What is below the base path, without the empty folders that are always there. */
export async function contents(base: string): Promise<string[]> {
  const own = [
    'v',
    's',
    '.switchboard',
    '.switchboard/v',
    '.switchboard/s',
    '.switchboard/p',
    '.switchboard/c',
    '.switchboard/tmp',
  ];
  const all = (await readdir(base, { recursive: true })).filter((path) => !own.includes(path));
  return all.sort();
}
