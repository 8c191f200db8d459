/** An nfs-client driver whose share is a folder of this machine: it says that it is the server itself. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import * as v from 'valibot';
import { createRunner } from '../../src/backends/exec/runner.ts';
import { type CallContext, detachedContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { driverType } from '../../src/drivers/index.ts';
import type { DriverEnvironment } from '../../src/drivers/type.ts';
import { makeFolder } from './local-hostpath-support.ts';

export interface ShareBench {
  readonly driver: Driver;
  readonly base: string;
  readonly call: CallContext;
  readonly volumes: NonNullable<Driver['volumes']>;
  readonly snapshots: NonNullable<Driver['snapshots']>;
}

export interface ShareBenchOptions {
  readonly driver?: 'nfs-client' | 'smb-client' | 'lustre-client';
  readonly base?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  /** More of the block. */
  readonly block?: Readonly<Record<string, unknown>>;
  readonly environment?: Partial<DriverEnvironment>;
}

export async function shareBench(t: TestContext, options: ShareBenchOptions = {}): Promise<ShareBench> {
  const { driver: name = 'nfs-client', config, block } = options;
  const base = options.base ?? (await makeFolder(t));
  const type = driverType(name);
  if (!type) throw new Error(`there is no ${name}`);
  const settings = { shareHost: '127.0.0.1', shareBasePath: '/srv/csi', controllerBasePath: base, ...block };
  const parsed = v.parse(type.schema, { driver: name, [name.replace('-client', '')]: settings, ...config });
  const driver = type.create(parsed, {
    csiName: 'test',
    nodeName: 'node1',
    nodeId: 'node1',
    nodeTopology: {},
    maxIdBytes: 128,
    run: createRunner(),
    log: silentLogger,
    ...options.environment,
  });
  t.after(() => driver.close());
  const { volumes, snapshots } = driver;
  if (!volumes || !snapshots) throw new Error('the driver lacks operations');
  return { driver, base, call: detachedContext(silentLogger), volumes, snapshots };
}

/** The children of this process that work on files. */
export async function fileWorkers(): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const [line, status] = await Promise.all(
      ['cmdline', 'status'].map((file) => readFile(join('/proc', name, file), 'utf8').catch(() => '')),
    );
    const isChild = new RegExp(`^PPid:\\s+${process.pid}$`, 'm').test(status ?? '');
    const isZombie = /^State:\s+Z/m.test(status ?? '');
    if (isChild && !isZombie && line?.split('\0').includes('files-worker')) found.push(Number(name));
  }
  return found;
}
