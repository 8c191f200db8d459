/**
 * `restic`: snapshots in a restic repository (https://restic.readthedocs.io/). Its place and password come from the environment.
 *
 * They carry the tags that democratic-csi gives them, so that either finds what the other made: `source=democratic-csi`, `csi_volume_id=…`,
 * `csi_instance_id=…` and `csi_snapshot_name=…`. All are given at once, because changing them later takes a lock that no other backup may hold.
 */
import { posix } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import * as v from 'valibot';
import { untilOver } from '../../../core/call.ts';
import { CallError } from '../../../core/errors.ts';
import type { CopyProgress } from '../copy-progress.ts';
import type { Call, Directory } from '../directory.ts';
import { noLimitMs } from '../no-limit.ts';
import type { FillTarget } from '../source.ts';
import type { SnapshotTask } from './engine.ts';
import type { Repository, Stored } from './repository.ts';
import { createBackupOutput } from './restic-backup-output.ts';
import type { RunRestic } from './restic-command.ts';
import { createResticCommand, NoRepository, RepositoryLocked } from './restic-command.ts';
import { storedByTags } from './stored-by-tags.ts';

const snapshotList = v.nullable(
  v.array(
    v.object({
      id: v.string(),
      time: v.string(),
      paths: v.array(v.string()),
      hostname: v.optional(v.string(), ''),
      tags: v.nullish(v.array(v.string())),
      // Since 0.17.
      summary: v.optional(v.object({ total_bytes_processed: v.optional(v.number(), 0) })),
    }),
  ),
);

/** A line of JSON for every snapshot of every volume can be long. */
const listBytes = 256 * 2 ** 20;

const sourceTag = 'source=democratic-csi';

export function createRestic(directory: Directory): Repository {
  const { party, options } = directory;
  const restic = createResticCommand(directory);
  const { tags: configured = [], prune = false } = options.snapshots.restic ?? {};

  async function snapshots(call: Call, selection: readonly string[]): Promise<readonly Stored[]> {
    const args = ['snapshots', '--json', '--no-lock', ...selection];
    const { stdout, truncated } = await restic(call, { args, keepBytes: listBytes });
    const parsed = v.safeParse(v.pipe(v.string(), v.trim(), v.parseJson(), snapshotList), stdout || '[]');
    if (truncated || !parsed.success) throw new CallError('INTERNAL', '`restic snapshots` did not answer with a list');
    return (parsed.output ?? []).flatMap(({ id, time, paths, hostname, tags, summary }) => {
      const pairs = (tags ?? []).map(pairOf);
      const facts = { inner: id, host: hostname, path: paths[0] ?? '', createdAt: new Date(time) };
      return paths.length === 1 ? (storedByTags(pairs, facts, summary?.total_bytes_processed) ?? []) : [];
    });
  }

  /** None where there is no repository: it is made with the first snapshot. */
  async function ifAny(find: () => Promise<readonly Stored[]>): Promise<readonly Stored[]> {
    try {
      return await find();
    } catch (error) {
      if (error instanceof NoRepository) return [];
      throw error;
    }
  }

  function tagsOf({ spec, sizeBytes }: SnapshotTask): readonly string[] {
    return [
      sourceTag,
      `csi_volume_id=${spec.sourceVolumeId}`,
      ...(party.instanceId ? [`csi_instance_id=${party.instanceId}`] : []),
      `csi_snapshot_name=${spec.name}`,
      ...(sizeBytes > 0 ? [`csi_size_bytes=${sizeBytes}`] : []),
      ...configured,
    ];
  }

  async function create(call: Call, task: SnapshotTask, path: string, progress: CopyProgress): Promise<Stored> {
    const output = createBackupOutput(progress);
    const tags = tagsOf(task).flatMap((tag) => ['--tag', tag]);
    const backup = {
      args: ['backup', '--json', '--host', party.host, ...tags, path],
      timeoutMs: noLimitMs,
      accept: [0, 3],
      takeLine: output.takeLine,
    };
    const { code, stderr } = await whenUnlocked(call, () => withRepository(call, restic, () => restic(call, backup)));
    const id = output.snapshotId();
    const [stored] = id === undefined ? [] : await snapshots(call, [id]);
    const lost = code === 0 ? 0 : output.lostIn(stderr);
    if (code !== 0 && typeof lost === 'string') {
      if (stored) await forget(call, stored);
      throw new CallError('INTERNAL', `\`restic\` could not read all of volume ${task.spec.sourceVolumeId}: ${lost}`);
    }
    if (lost) call.log.warn('files disappeared while their volume was copied', { files: lost, from: path });
    if (!stored) throw new CallError('INTERNAL', '`restic backup` ended without a snapshot');
    return await measured(call, stored);
  }

  async function measured(call: Call, stored: Stored): Promise<Stored> {
    if (stored.sizeBytes > 0) return stored;
    const { stdout } = await restic(call, {
      args: ['stats', '--json', '--no-lock', stored.inner],
      timeoutMs: noLimitMs,
    });
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), v.object({ total_size: v.number() })), stdout);
    return parsed.success ? { ...stored, sizeBytes: parsed.output.total_size } : stored;
  }

  async function get(call: Call, inner: string): Promise<Stored | undefined> {
    const found = await snapshots(call, [inner]);
    return found.length === 1 ? found[0] : undefined;
  }

  async function forget(call: Call, { inner }: Stored): Promise<void> {
    const args = ['forget', '--json', ...(prune ? ['--prune'] : []), inner];
    try {
      await restic(call, { args, timeoutMs: noLimitMs });
    } catch (error) {
      if (!(error instanceof RepositoryLocked)) throw error;
      // Removes only locks whose owner is gone, such as that of a backup that was killed. Data is removed under certain locks alone.
      await restic(call, { args: ['unlock'] });
      await restic(call, { args: ['forget', '--json', inner], timeoutMs: noLimitMs });
      if (prune)
        call.log.warn('a restic snapshot was removed without --prune, as the repository was locked', {
          snapshot: inner,
        });
    }
  }

  return {
    name: 'restic',
    named: (call, name) => ifAny(() => snapshots(call, ['--tag', `${sourceTag},csi_snapshot_name=${name}`])),
    list: (call) => ifAny(() => snapshots(call, ['--tag', sourceTag])),
    get,
    measured,
    create,
    restore: (call, stored, where) => restore(directory, restic, call, stored, where),
    delete: forget,
    close: async () => {},
  };
}

/** Milliseconds before another look at a repository that somebody has for himself, at first and at most; and how many looks. */
const lockedPause = { first: 1000, longest: 30_000, looks: 40 } as const;

/** Runs a command, again while somebody removes snapshots from the repository, for up to a quarter of an hour. */
async function whenUnlocked<T>(call: Call, work: () => Promise<T>): Promise<T> {
  for (let look = 1, pause: number = lockedPause.first; ; look++, pause = Math.min(2 * pause, lockedPause.longest)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RepositoryLocked) || look === lockedPause.looks) throw error;
      if (look === 1) call.log.info('a backup waits for its repository, which is locked', { why: error.message });
      await untilOver(call.signal, delay(pause, undefined, { signal: call.signal }));
    }
  }
}

/** Runs a command, again with a new repository where there is none. */
async function withRepository<T>(call: Call, restic: RunRestic, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof NoRepository)) throw error;
    call.log.warn('there is no restic repository yet: it is made now', { why: error.message });
    await restic(call, { args: ['init'] }).catch((failure: unknown) => {
      // Somebody else makes the same one.
      if (!(failure instanceof CallError && /already (?:exists|initialized)/.test(failure.message))) throw failure;
    });
    return await work();
  }
}

/**
 * restic restores the whole path of a folder. That keeps the owner, mode and attributes of the folder itself, which it does not when it is asked for
 * the folder's contents only. Any error counts, also one that restic itself ignores: a file that it could not restore would be missing.
 */
async function restore(
  { files, hostView }: Directory,
  restic: RunRestic,
  call: Call,
  { inner, path }: Stored,
  { work, target }: FillTarget,
): Promise<void> {
  const sparse = await hasSparse(call, restic);
  const args = ['restore', inner, '--no-lock', ...(sparse ? ['--sparse'] : [])];
  const failed = (error: unknown) => {
    throw error instanceof CallError && /no matching ID|no snapshot found/i.test(error.message)
      ? new CallError('NOT_FOUND', `there is no restic snapshot ${inner} any more`)
      : error;
  };
  const place = await hostView.pathOf(call, target);
  await restic(call, { args: [...args, '--target', place], timeoutMs: noLimitMs }).catch(failed);
  const inside = posix.join(target, posix.normalize(posix.join('/', path)));
  if ((await files.kindOf(inside)) !== 'directory') {
    throw new CallError('DATA_LOSS', `restic snapshot ${inner} does not hold the folder ${path} that it was made of`);
  }
  // Its parents were restored with it, within the folder that is to be filled, whose project quota it has inherited.
  const aside = posix.join(work.path, 'restored');
  await files.move(inside, aside);
  await files.removeTree(target, work.path, call.signal);
  if (!(await files.move(aside, target))) throw new CallError('ABORTED', `${target} was removed while it was filled`);
}

/** Before 0.15 restic writes out holes. */
async function hasSparse(call: Call, restic: RunRestic): Promise<boolean> {
  const { stdout } = await restic(call, { args: ['version'] });
  const [, major, minor] = /restic (\d+)\.(\d+)/.exec(stdout) ?? [];
  return Number(major) > 0 || Number(minor) >= 15;
}

function pairOf(tag: string): readonly [string, string] {
  const at = tag.indexOf('=');
  return at < 0 ? [tag, ''] : [tag.slice(0, at), tag.slice(at + 1)];
}
