/** The last part of a volume's making, for one that has its data: shares it and marks it as complete. */
import type { Step } from '../../backends/shell/steps.ts';
import { type Dataset, numberOf, valueIn } from '../../backends/zfs/dataset.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import { roundUp } from '../../core/sizes.ts';
import type { Parameters, Volume } from '../../core/volume.ts';
import { unfinishedLook } from './birth.ts';
import { permissionSteps } from './permissions.ts';
import type { ZfsStore } from './store.ts';
import { asciiJson, userProperties } from './user-properties.ts';
import { idOf, parametersOf, sizeOf, volumeOf } from './volume-answer.ts';
import { asAssignments, type Properties } from './wanted-properties.ts';

export interface Finishing {
  /**
   * Whether its root directory gets what the connection says, as that of a new volume does. `untouched`: only when it is as ZFS made it, for the volume was
   * marked as complete and could not be looked at, since it was not mounted. Whoever uses a volume may have changed them.
   */
  readonly permissions: 'yes' | 'no' | 'untouched';
  /** Set together with the mark that it is complete. */
  readonly marks?: Properties | undefined;
  /** Those of the request. Default: those that are kept with the volume. */
  readonly parameters?: Parameters | undefined;
  /** It was mounted and shared when it was made, a moment ago. */
  readonly isShared?: boolean | undefined;
}

/** May be repeated. */
export async function finishVolume(
  store: ZfsStore,
  call: CallContext,
  dataset: Dataset,
  { permissions, marks = {}, parameters = parametersOf(dataset) ?? {}, isShared = false }: Finishing,
): Promise<Volume> {
  const { zfs, share } = store;
  const { name } = dataset;
  const shared =
    share.byProperties?.(dataset) ??
    (await share.publish(call, { volumeId: idOf(dataset), dataset: name, parameters }, dataset));
  const kept = {
    ...missingProperties(store, dataset),
    ...marks,
    ...shared.properties,
    [userProperties.shareContext]: asciiJson(shared.context),
    [userProperties.success]: 'true',
  };
  const path = valueIn(dataset, 'mountpoint');
  const isMountable = path?.startsWith('/') === true;
  // The blocks of a clone are as large as those of its origin, whatever the class says.
  const sizeBytes = roundUp(sizeOf(store, dataset) ?? 0, numberOf(dataset, 'volblocksize') ?? 1);
  const grows = store.kind === 'volume' && (numberOf(dataset, 'volsize') ?? sizeBytes) < sizeBytes;
  const steps: readonly Step[] = [
    ...(grows ? [{ argv: zfs.zfs('set', `volsize=${sizeBytes}`, name) }] : []),
    // A copy is received without being mounted, and a crash within `zfs create` may leave it so. Mounting does not share it.
    ...(isMountable && valueIn(dataset, 'mounted') === 'no' ? [{ argv: zfs.zfs('mount', name) }] : []),
    ...(isMountable && permissions === 'yes' ? permissionSteps(store, path) : []),
    ...(isMountable && permissions === 'untouched' ? untouchedSteps(store, path) : []),
    ...(isMountable && !isShared ? shareSteps(store, name) : []),
    { argv: zfs.zfs('set', ...asAssignments(kept), name) },
  ];
  const results = await zfs.run(call, 'zfs set', steps as [Step, ...Step[]]);
  const last = results.at(-1) ?? results[0];
  if (last.code !== 0) {
    const argv = steps[results.length - 1]?.argv ?? [];
    throw new StepFailed(zfs.host, argv.filter((word) => !word.includes('=')).join(' '), last);
  }
  const now = grows ? { ...kept, volsize: String(sizeBytes) } : kept;
  const properties = Object.entries(now).map(([key, value]) => [key, { value, source: 'local' as const }]);
  return volumeOf(store, { ...dataset, properties: { ...dataset.properties, ...Object.fromEntries(properties) } });
}

/** Permissions for a root directory that has got none: the look and the rest are one, for nobody is told of it in between. */
function untouchedSteps(store: ZfsStore, path: string): readonly Step[] {
  const look = unfinishedLook(store, path).map((step) => ({ ...step, body: 'untouched=$("$@")' }));
  const only = permissionSteps(store, path).map((step) => ({ ...step, body: '[ -z "$untouched" ] || "$@"' }));
  return [...look, ...only];
}

/** One that shares it already, perhaps for others too, stays as it is. */
function missingProperties({ share }: ZfsStore, dataset: Dataset): Readonly<Record<string, string>> {
  const missing = Object.entries(share.properties).filter(([key]) => (valueIn(dataset, key) ?? 'off') === 'off');
  return Object.fromEntries(missing);
}

/** What is shared already is refused, which says nothing. */
export function shareSteps({ zfs, share }: ZfsStore, name: string): readonly Step[] {
  return Object.keys(share.properties).length === 0 ? [] : [{ argv: zfs.zfs('share', name), goOn: 'any' }];
}
