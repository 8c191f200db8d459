/** `kopia`: snapshots in a kopia repository (https://kopia.io/docs/reference/command-line/), with the tags that democratic-csi gives them. */
import * as v from 'valibot';
import { CallError } from '../../../core/errors.ts';
import type { Call, Directory } from '../directory.ts';
import { noLimitMs } from '../no-limit.ts';
import type { SnapshotTask } from './engine.ts';
import { createKopiaClient } from './kopia-client.ts';
import type { Repository, Stored } from './repository.ts';
import { storedByTags } from './stored-by-tags.ts';

/** A snapshot manifest. */
const manifest = v.object({
  id: v.string(),
  source: v.object({ host: v.string(), userName: v.string(), path: v.string() }),
  startTime: v.string(),
  /** Why it is not whole: a checkpoint, or an upload that was broken off. */
  incomplete: v.optional(v.string(), ''),
  stats: v.optional(v.object({ totalSize: v.optional(v.number(), 0) })),
  rootEntry: v.optional(
    v.object({
      summ: v.optional(v.object({ size: v.optional(v.number(), 0), numFailed: v.optional(v.number(), 0) })),
    }),
  ),
  tags: v.nullish(v.record(v.string(), v.string())),
});
const manifests = v.nullable(v.array(manifest));

type Manifest = v.InferOutput<typeof manifest>;

const user = 'democratic-csi';

/** What it says when there is nothing to delete. */
const gone = /no snapshots matched|invalid content hash|snapshot not found/i;

const listBytes = 256 * 2 ** 20;

export function createKopia(directory: Directory): Repository {
  const { party, options } = directory;
  const client = createKopiaClient(directory);
  const { tags: configured = [] } = options.snapshots.kopia ?? {};

  async function list(call: Call, tags: readonly string[] = []): Promise<readonly Stored[]> {
    const args = ['--json', '--no-storage-stats', '--no-delta', '--all', ...tags.flatMap((tag) => ['--tags', tag])];
    const { stdout, truncated } = await client.run(call, { command: ['snapshot', 'list'], args, keepBytes: listBytes });
    const parsed = v.safeParse(v.pipe(v.string(), v.trim(), v.parseJson(), manifests), stdout || '[]');
    if (truncated || !parsed.success)
      throw new CallError('INTERNAL', '`kopia snapshot list` did not answer with a list');
    return (parsed.output ?? []).flatMap((one) => storedFrom(one) ?? []);
  }

  function tagsOf({ spec, sizeBytes }: SnapshotTask): readonly string[] {
    return [
      'source:democratic-csi',
      `csi_volume_id:${spec.sourceVolumeId}`,
      ...(party.instanceId ? [`csi_instance_id:${party.instanceId}`] : []),
      `csi_snapshot_name:${spec.name}`,
      ...(sizeBytes > 0 ? [`csi_size_bytes:${sizeBytes}`] : []),
      ...configured,
    ];
  }

  return {
    name: 'kopia',
    named: (call, name) => list(call, ['source:democratic-csi', `csi_snapshot_name:${name}`]),
    list: (call) => list(call, ['source:democratic-csi']),
    // Ids cannot be looked up; those that were cut to fit a handle still say which it is.
    get: async (call, inner) => (await list(call)).find(({ inner: id }) => id.startsWith(inner)),
    measured: async (_call, stored) => stored,
    async create(call, task, path, progress) {
      // Policies remove old snapshots of a folder whenever a new one is made, but not those that are pinned.
      const tags = tagsOf(task).flatMap((tag) => ['--tags', tag]);
      const args = ['--json', '--pin', 'csi', ...tags, path];
      const { stdout } = await client.run(call, { command: ['snapshot', 'create'], args, timeoutMs: noLimitMs });
      const parsed = v.safeParse(v.pipe(v.string(), v.trim(), v.parseJson(), manifest), stdout);
      const stored = parsed.success ? storedFrom(parsed.output) : undefined;
      progress.report(stored?.sizeBytes ?? 0);
      if (stored) return stored;
      throw new CallError('INTERNAL', `\`kopia\` could not copy all of volume ${task.spec.sourceVolumeId}`);
    },
    async restore(call, { inner }, { target }) {
      const place = await directory.hostView.pathOf(call, target);
      const args = ['--write-sparse-files', inner, place];
      try {
        await client.run(call, { command: ['snapshot', 'restore'], args, timeoutMs: noLimitMs });
      } catch (error) {
        if (!(error instanceof CallError && gone.test(error.message))) throw error;
        throw new CallError('NOT_FOUND', `there is no kopia snapshot ${inner} any more`);
      }
    },
    async delete(call, { inner }) {
      const args = ['--delete', inner];
      try {
        await client.run(call, { command: ['snapshot', 'delete'], args, timeoutMs: noLimitMs });
      } catch (error) {
        if (!(error instanceof CallError && gone.test(error.message))) throw error;
      }
    },
    close: client.close,
  };
}

/** Undefined for what is not a whole snapshot of a volume. */
function storedFrom(one: Manifest): Stored | undefined {
  const { id, source, startTime, incomplete, stats, rootEntry, tags } = one;
  if (incomplete !== '' || (rootEntry?.summ?.numFailed ?? 0) > 0 || source.userName !== user) return undefined;
  // In manifests, tags carry a prefix that the command line leaves out.
  const pairs = Object.entries(tags ?? {}).map(([name, value]) => [name.replace(/^tag:/, ''), value] as const);
  const facts = { inner: id, host: source.host, path: source.path, createdAt: new Date(startTime) };
  return storedByTags(pairs, facts, stats?.totalSize || rootEntry?.summ?.size);
}
