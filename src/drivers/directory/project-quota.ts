/**
 * Enforced volume sizes by project quotas: the file system counts what is below a volume's folder under a number of its own and stops at the
 * limit (xfs_quota(8), setquota(8)).
 *
 * The number is drawn at random from a range that other programs leave alone, and is claimed by a file below the base path, whose content is
 * the volume's id. It is freed after the last byte of the volume is gone.
 */
import { randomInt } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import type { RunCommand } from '../../backends/exec/run.ts';
import { throwIfOver } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import { readMountTable } from '../../node/mount-table.ts';
import type { Files } from './files.ts';
import type { Call, HostView } from './host-view.ts';
import type { Layout } from './layout.ts';
import { isId } from './layout.ts';
import { readRecord } from './record.ts';

export interface ProjectQuotas {
  /** Whether new volumes are limited to their size. */
  readonly enforced: boolean;
  /** A free number for a new volume, or undefined when sizes are not enforced. Throws FAILED_PRECONDITION when they cannot be. */
  draw(): Promise<number | undefined>;
  /** Makes the empty folder `path` of a new volume count under this number and stop at `bytes`. */
  apply(call: Call, project: number, volumeId: string, path: string, bytes: number): Promise<void>;
  /** Changes the limit of a volume whose folder is `path`. */
  resize(call: Call, project: number, path: string, bytes: number): Promise<void>;
  /** Lifts the limit and frees the number. Nothing may count under it any more. */
  release(call: Call, project: number): Promise<void>;
  /** {@link release}, unless a volume is recorded to have the number. */
  releaseUnused(call: Call, project: number): Promise<void>;
}

export interface QuotaSettings {
  readonly enforce: boolean;
  readonly layout: Layout;
  readonly files: Files;
  readonly hostView: HostView;
  readonly run: RunCommand;
}

/** Container runtimes and kubelets count up from small numbers, and from 2^20. */
const firstProject = 2 ** 24;
const lastProject = 2 ** 31 - 1;

const limitMs = 60_000;

export function createProjectQuotas(settings: QuotaSettings): ProjectQuotas {
  const { layout, files, hostView, run, enforce } = settings;
  const claim = (project: number) => posix.join(layout.projects, String(project));

  async function setLimit(call: Call, project: number, bytes: number, proof: string): Promise<void> {
    const kind = await quotaFileSystem(layout.base);
    const mountPoint = await hostMountPoint(call, proof);
    const kib = Math.ceil(bytes / 1024);
    const command =
      kind === 'xfs'
        ? { program: 'xfs_quota', args: ['-x', '-c', `limit -p bsoft=0 bhard=${kib}k ${project}`, mountPoint] }
        : { program: 'setquota', args: ['-P', String(project), '0', String(kib), '0', '0', mountPoint] };
    await run(call, { ...command, timeoutMs: limitMs });
  }

  async function hostMountPoint(call: Call, proof: string): Promise<string> {
    const path = await hostView.pathOf(call, proof);
    const { stdout } = await run(call, { program: 'stat', args: ['-c', '%m', '--', path], timeoutMs: limitMs });
    return stdout.replace(/\n$/, '');
  }

  /** xfs_quota says so only in words when it fails, so the file system itself is asked. */
  async function requireLimit(path: string, bytes: number): Promise<void> {
    const shown = (await files.space(path))?.total ?? 0;
    const whole = (await files.space(layout.base))?.total ?? 0;
    const slack = 2 ** 16;
    if (shown <= bytes + slack || whole <= bytes + slack) return;
    throw new CallError(
      'FAILED_PRECONDITION',
      `the project quota of ${formatSize(bytes)} has no effect at ${layout.base}: the file system still shows ${formatSize(shown)}`,
    );
  }

  /** A limit that cannot be lifted, such as when quotas were turned off since, limits nothing: the next user of the number sets his own. */
  async function release(call: Call, project: number): Promise<void> {
    try {
      await setLimit(call, project, 0, layout.projects);
    } catch (error) {
      throwIfOver(call.signal);
      call.log.warn('the limit of a project quota could not be lifted', { project, error });
    }
    await files.remove(claim(project));
  }

  return {
    enforced: enforce,
    async draw() {
      if (!enforce) return undefined;
      await quotaFileSystem(layout.base);
      for (;;) {
        const project = randomInt(firstProject, lastProject);
        if ((await files.kindOf(claim(project))) === undefined) return project;
      }
    },
    async apply(call, project, volumeId, path, bytes) {
      if (!(await files.writeNew(claim(project), volumeId))) {
        throw new CallError('ABORTED', `project quota number ${project} was taken by another process; try again`);
      }
      const kind = await quotaFileSystem(layout.base);
      const hostPath = await hostView.pathOf(call, path);
      const command =
        kind === 'xfs'
          ? { program: 'xfs_io', args: ['-r', '-c', `chproj ${project}`, '-c', 'chattr +P', hostPath] }
          : { program: 'chattr', args: ['+P', '-p', String(project), hostPath] };
      await run(call, { ...command, timeoutMs: limitMs });
      await setLimit(call, project, bytes, path);
      await requireLimit(path, bytes);
    },
    async resize(call, project, path, bytes) {
      await setLimit(call, project, bytes, path);
      await requireLimit(path, bytes);
    },
    release,
    async releaseUnused(call, project) {
      const volumeId = await files.read(claim(project));
      const known = volumeId !== undefined && isId('v', volumeId);
      const record = known ? await readRecord(files, layout, 'v', volumeId) : undefined;
      if (record?.project !== project) await release(call, project);
    },
  };
}

/** The kind of the base path's file system, when it counts and enforces project quotas. Throws FAILED_PRECONDITION when it does not. */
async function quotaFileSystem(base: string): Promise<'xfs' | 'ext4'> {
  const mount = (await readMountTable()).covering(await realpath(base));
  const type = mount?.fsType ?? 'unknown';
  if (type !== 'xfs' && type !== 'ext4') {
    throw new CallError(
      'FAILED_PRECONDITION',
      `quota: project needs xfs or ext4, but ${base} is on ${type}: use another file system or "quota: none"`,
    );
  }
  if (!mount?.superOptions.includes('prjquota')) {
    const feature = type === 'ext4' ? ' (and `tune2fs -O project,quota` before)' : '';
    throw new CallError(
      'FAILED_PRECONDITION',
      `quota: project needs the file system of ${base} (${mount?.mountPoint}) to be mounted with the option prjquota${feature}`,
    );
  }
  return type;
}
