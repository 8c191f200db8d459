/** CreateVolume. The order of its steps is in entry.ts. */
import type { CallContext } from '../../core/call.ts';
import { throwIfOver } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import type { Volume, VolumeSpec } from '../../core/volume.ts';
import { requireCapabilities } from '../common/capability-check.ts';
import { chooseSize, fitsRange, requireRange } from '../common/capacity.ts';
import { sameParameters } from '../common/parameters.ts';
import { requireHere } from '../common/reach.ts';
import { volumeId } from '../common/volume-id.ts';
import type { Copies } from './copies.ts';
import { withCopyWork } from './copy-work.ts';
import type { Directory } from './directory.ts';
import type { Present } from './entry.ts';
import { appear, forget, rewrite, settle } from './entry.ts';
import { grow } from './expand-volume.ts';
import { applyPermissions } from './permissions.ts';
import type { VolumeRecord } from './record.ts';
import type { Snapshots } from './snapshots.ts';
import type { Source } from './source.ts';
import { openSource, sourceId } from './source.ts';
import { usedBytes } from './used-bytes.ts';
import { volumeOf } from './volume-answer.ts';
import type { Work } from './work.ts';
import { makeLayout } from './work.ts';
import { newWork } from './work-name.ts';

export interface VolumeParts {
  readonly directory: Directory;
  readonly copies: Copies;
  readonly snapshots: Pick<Snapshots, 'open'>;
}

/** Makes a volume, or answers with the one that an equal request made before. */
export async function createVolume(parts: VolumeParts, call: CallContext, spec: VolumeSpec): Promise<Volume> {
  const { directory, snapshots } = parts;
  const id = volumeId(spec, directory.naming);
  requireCapabilities(spec.capabilities, directory.rules);
  if (Object.keys(spec.mutableParameters).length > 0) {
    throw new CallError('INVALID_ARGUMENT', 'this driver has no mutable parameters');
  }
  if (directory.node) requireHere(spec.topology, directory.node);
  requireRange(spec.capacity);

  const entry = await settle(directory, 'v', id);
  if (entry.state === 'present') return await existing(directory, call, spec, id, entry);
  if (entry.state === 'lost') await forget(directory, 'v', id);
  const source = spec.source && (await openSource(directory, snapshots.open, call, spec.source));
  const sizeBytes = chooseSize(spec.capacity, source?.sizeBytes);
  const record = await make(parts, call, spec, id, sizeBytes, source);
  if (record) return { ...volumeOf(directory, id, record), source: spec.source };
  // Another process has made one of this id meanwhile.
  const other = await settle(directory, 'v', id);
  if (other.state !== 'present')
    throw new CallError('ABORTED', `volume ${id} is changed by another process; try again`);
  return await existing(directory, call, spec, id, other);
}

/** Undefined: somebody else was faster. */
async function make(
  { directory, copies }: VolumeParts,
  call: CallContext,
  spec: VolumeSpec,
  id: string,
  sizeBytes: number,
  source: Source | undefined,
): Promise<VolumeRecord | undefined> {
  if (directory.quotas.enforced) await makeLayout(directory);
  const project = await directory.quotas.draw();
  let made: VolumeRecord | undefined;
  try {
    await withCopyWork(directory, call, { area: 'v', id, from: source?.identity, project }, async (work, broken) => {
      const path = work.data('v', id);
      if (project !== undefined) await directory.quotas.apply(call, project, id, path, sizeBytes);
      if (source) {
        const title = { what: `copy of ${source.title}`, engine: source.engine };
        await copies.run(call, title, (progress) => source.fill(call, { work, target: path, broken }, progress));
      }
      if (source && project !== undefined) await requireRoom(directory, call, path, sizeBytes);
      await applyPermissions(directory, call, path, source ? undefined : 0o755);
      throwIfOver(call.signal);
      const record = recordOf(spec, work, sizeBytes, project);
      if (await appear(directory, work, 'v', id, record)) made = record;
    });
  } finally {
    if (!made && project !== undefined) await freeProject(directory, call, project);
  }
  return made;
}

/** Some file systems let root write past a quota, so a copy may have grown beyond it. */
async function requireRoom(directory: Directory, call: CallContext, path: string, sizeBytes: number): Promise<void> {
  const used = await usedBytes(directory, call, path);
  if (used <= sizeBytes) return;
  throw new CallError(
    'RESOURCE_EXHAUSTED',
    `the source holds ${formatSize(used)}, more than the ${formatSize(sizeBytes)} of the new volume: ask for more`,
  );
}

function recordOf(spec: VolumeSpec, work: Pick<Work, 'id'>, sizeBytes: number, project?: number): VolumeRecord {
  const source = spec.source && { type: spec.source.type, id: sourceId(spec.source) ?? spec.source.id };
  return {
    format: 1,
    work: work.id,
    name: spec.name,
    createdAt: new Date().toISOString(),
    parameters: { ...spec.parameters },
    sizeBytes,
    source: source ?? null,
    ...(project !== undefined && { project }),
  };
}

/** The number stays claimed when this fails, until the sweep or the operator frees it; the failure that led here is what the caller must see. */
async function freeProject(directory: Directory, call: CallContext, project: number): Promise<void> {
  const cleaning = { signal: AbortSignal.timeout(30_000), log: call.log };
  await directory.quotas.releaseUnused(cleaning, project).catch((error: unknown) => {
    call.log.warn('a project quota number could not be freed', { project, error });
  });
}

async function existing(
  directory: Directory,
  call: CallContext,
  spec: VolumeSpec,
  id: string,
  entry: Present<'v'>,
): Promise<Volume> {
  if (entry.kind === 'other') {
    throw new CallError(
      'FAILED_PRECONDITION',
      `${directory.layout.data('v', id)} is in the way: it is not a directory`,
    );
  }
  const { record } = entry;
  if (!record) return await adopt(directory, spec, id);
  const required = spec.capacity.requiredBytes ?? 0;
  if (directory.naming.template && record.sizeBytes !== undefined && record.sizeBytes < required) {
    // Another claim is given a volume that was kept for it: what it holds stays, and it gets the room it asks for.
    const grown = await grow(directory, call, id, record, required);
    return await existing(directory, call, spec, id, { ...entry, record: grown });
  }
  const difference = differenceTo(spec, record, directory);
  if (difference) throw new CallError('ALREADY_EXISTS', `volume ${id} exists already, ${difference}`);
  return { ...volumeOf(directory, id, record), source: spec.source };
}

/**
 * A directory without a record was made by democratic-csi, whose volumes are taken over with the facts of the request that asks for them
 * again. But nothing tells whether a copy in it is whole.
 */
async function adopt(directory: Directory, spec: VolumeSpec, id: string): Promise<Volume> {
  if (spec.source) {
    throw new CallError(
      'ALREADY_EXISTS',
      `${directory.layout.data('v', id)} exists already and nothing tells whether it is a whole copy of ${spec.source.type} ` +
        `${spec.source.id}: remove it to have it copied again`,
    );
  }
  const { source: _unknown, ...record } = recordOf(spec, { id: newWork() }, chooseSize(spec.capacity));
  await rewrite(directory, 'v', id, record);
  return volumeOf(directory, id, record);
}

/** What an existing volume has that the request does not ask for. Names are only compared where each gives an id of its own. */
function differenceTo(spec: VolumeSpec, record: VolumeRecord, { naming }: Directory): string | undefined {
  if (!naming.template && record.name !== undefined && record.name !== spec.name) {
    return `made under the name ${JSON.stringify(record.name)}`;
  }
  if (record.sizeBytes !== undefined && !fitsRange(record.sizeBytes, spec.capacity)) {
    return `with ${record.sizeBytes} bytes (${formatSize(record.sizeBytes)})`;
  }
  if (record.source !== undefined && !sameSource(spec, record.source)) {
    return record.source ? `made from ${record.source.type} ${record.source.id}` : 'made empty';
  }
  const compared = !naming.template && record.parameters !== undefined;
  return compared && !sameParameters(record.parameters ?? {}, spec.parameters) ? 'with other parameters' : undefined;
}

function sameSource(spec: VolumeSpec, recorded: NonNullable<VolumeRecord['source']> | null): boolean {
  if (!spec.source || !recorded) return !spec.source && !recorded;
  return spec.source.type === recorded.type && (sourceId(spec.source) ?? spec.source.id) === recorded.id;
}
