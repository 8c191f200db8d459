/** The last part of a volume's making, for one that has its data: shares it and marks it as complete. */
import type { Step } from '../../backends/shell/steps.ts';
import { type Dataset, valueIn } from '../../backends/zfs/dataset.ts';
import { StepFailed } from '../../backends/zfs/failure.ts';
import type { CallContext } from '../../core/call.ts';
import type { Volume } from '../../core/volume.ts';
import { permissionSteps } from './permissions.ts';
import type { ZfsStore } from './store.ts';
import { userProperties } from './user-properties.ts';
import { idOf, parametersOf, volumeOf } from './volume-answer.ts';
import { asAssignments } from './wanted-properties.ts';

/** May be repeated. `permissions`: its root directory gets what the connection says, as new volumes do. */
export async function finishVolume(
  store: ZfsStore,
  call: CallContext,
  dataset: Dataset,
  { permissions }: { readonly permissions: boolean },
): Promise<Volume> {
  const { zfs, share } = store;
  const { name } = dataset;
  const parameters = parametersOf(dataset) ?? {};
  const shared =
    share.byProperties?.(dataset) ??
    (await share.publish(call, { volumeId: idOf(dataset), dataset: name, parameters }, dataset));
  const kept = {
    ...missingProperties(store, dataset),
    ...shared.properties,
    [userProperties.shareContext]: JSON.stringify(shared.context),
    [userProperties.success]: 'true',
  };
  const path = valueIn(dataset, 'mountpoint');
  const isMountable = path?.startsWith('/') === true;
  const steps: readonly Step[] = [
    ...(isMountable && valueIn(dataset, 'mounted') === 'no' ? [{ argv: zfs.zfs('mount', name) }] : []),
    ...(isMountable && permissions ? permissionSteps(store, path) : []),
    { argv: zfs.zfs('set', ...asAssignments(kept), name) },
  ];
  const results = await zfs.run(call, 'zfs set', steps as [Step, ...Step[]]);
  const last = results.at(-1) ?? results[0];
  if (last.code !== 0 || results.length < steps.length) throw new StepFailed(zfs.host, `sharing ${name}`, last);
  const properties = Object.entries(kept).map(([key, value]) => [key, { value, source: 'local' as const }]);
  return volumeOf(store, { ...dataset, properties: { ...dataset.properties, ...Object.fromEntries(properties) } });
}

/** One that shares it already, perhaps for others too, stays as it is. */
function missingProperties({ share }: ZfsStore, dataset: Dataset): Readonly<Record<string, string>> {
  const missing = Object.entries(share.properties).filter(([key]) => (valueIn(dataset, key) ?? 'off') === 'off');
  return Object.fromEntries(missing);
}
