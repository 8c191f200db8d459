import type { CallContext } from '../../core/call.ts';
import type { Validation, ValidationQuery, VolumeOperations } from '../../core/driver.ts';
import { CallError } from '../../core/errors.ts';
import type { Page, PageRequest, VolumeStatus } from '../../core/volume.ts';
import { refusal } from '../common/capability-check.ts';
import { inBatches } from '../common/in-batches.ts';
import { pageOfIds } from '../common/paging.ts';
import { sameParameters } from '../common/parameters.ts';
import { volumeId } from '../common/volume-id.ts';
import type { Copies } from './copies.ts';
import { createVolume } from './create-volume.ts';
import type { Directory } from './directory.ts';
import { disappear, look, settle } from './entry.ts';
import { idsOfRecords, isId } from './layout.ts';
import { dropPartials } from './partial-copy.ts';
import type { Snapshots } from './snapshots.ts';
import type { Sweeper } from './sweep.ts';
import { statusOf, volumeOf } from './volume-answer.ts';

/** The volume operations of a directory driver. */
export function directoryVolumes(
  directory: Directory,
  sweeper: Sweeper,
  copies: Copies,
  snapshots: Snapshots,
): VolumeOperations {
  return {
    sources: new Set(['snapshot', 'volume']),
    reportsCondition: true,
    idFor: (spec) => volumeId(spec, directory.naming),
    async create(call, spec) {
      await sweeper.sweep(call);
      return await createVolume({ directory, copies, snapshots }, call, spec);
    },
    async delete(call, id) {
      if (directory.retain || !isId('v', id)) return;
      const isLeft = await sweeper.sweep(call);
      await snapshots.requireNonePromised(id);
      await deleteVolume(directory, call, id, isLeft);
    },
    validate: (_call, query) => validateVolume(directory, query),
    async get(_call, id) {
      const status = await statusById(directory, id);
      if (!status) throw notFound(id);
      return status;
    },
    list: (_call, page) => listVolumes(directory, page),
  };
}

/** `isLeft`: dead processes have left something, which may be a copy that was to become this volume. */
async function deleteVolume(directory: Directory, call: CallContext, id: string, isLeft: boolean): Promise<void> {
  const entry = await settle(directory, 'v', id);
  if (isLeft) await dropPartials(directory, call, 'v', id);
  if (entry.state === 'absent') return;
  const mountPoints = (await directory.mountPointsOf?.(directory.layout.data('v', id))) ?? [];
  if (mountPoints.length > 0) {
    throw new CallError(
      'FAILED_PRECONDITION',
      `volume ${id} is in use: it is mounted at ${mountPoints.join(' and at ')}`,
    );
  }
  await call.waitingFor(`removal of volume ${id}`, () => disappear(directory, call, 'v', id, entry.record?.project));
}

async function validateVolume(directory: Directory, query: ValidationQuery): Promise<Validation> {
  const { volumeId: id, capabilities, context, parameters } = query;
  const entry = isId('v', id) ? await look(directory, 'v', id) : undefined;
  if (entry?.state !== 'present') throw notFound(id);
  const why = refusal(capabilities, directory.rules) ?? strangeContext(directory, id, context);
  if (why) return { confirmed: false, message: why };
  const recorded = entry.record?.parameters;
  const different = recorded && Object.keys(parameters).length > 0 && !sameParameters(recorded, parameters);
  return different ? { confirmed: false, message: 'it was made with other parameters' } : { confirmed: true };
}

/** Orchestrators add keys of their own to a context; only those that the driver gave out are compared. */
function strangeContext(directory: Directory, id: string, context: ValidationQuery['context']): string | undefined {
  const expected = directory.contextOf(id);
  const strange = Object.keys(expected).find((key) => context[key] !== undefined && context[key] !== expected[key]);
  return strange === undefined ? undefined : `its context has ${strange}=${expected[strange]}, not ${context[strange]}`;
}

async function listVolumes(directory: Directory, request: PageRequest): Promise<Page<VolumeStatus>> {
  const page = pageOfIds(await volumeIds(directory), request);
  const statuses = await inBatches(page.ids, (id) => statusOrDamage(directory, id));
  const entries = statuses.filter((status) => status !== undefined);
  return page.nextToken === undefined ? { entries } : { entries, nextToken: page.nextToken };
}

async function volumeIds({ files, layout }: Directory): Promise<readonly string[]> {
  const [names, records] = await Promise.all([
    files.list(layout.dataFolder('v')),
    files.list(layout.recordFolder('v')),
  ]);
  return [...new Set([...names.filter((name) => isId('v', name)), ...idsOfRecords('v', records)])];
}

async function statusById(directory: Directory, id: string): Promise<VolumeStatus | undefined> {
  return isId('v', id) ? statusOf(directory, id, await look(directory, 'v', id)) : undefined;
}

/** One record that cannot be read must not hide all volumes. */
async function statusOrDamage(directory: Directory, id: string): Promise<VolumeStatus | undefined> {
  try {
    return await statusById(directory, id);
  } catch (error) {
    if (!(error instanceof CallError && error.code === 'DATA_LOSS')) throw error;
    return { volume: volumeOf(directory, id, undefined), condition: { abnormal: true, message: error.message } };
  }
}

function notFound(id: string): CallError {
  return new CallError('NOT_FOUND', `there is no volume ${JSON.stringify(id)}`);
}
