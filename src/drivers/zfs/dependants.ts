/** What there is of a volume besides itself: snapshots, clones of them, copies for which they were made. */
import { type Dataset, ownValue, valueIn } from '../../backends/zfs/dataset.ts';
import { isTemporary, userProperties } from './user-properties.ts';

export interface Dependants {
  readonly snapshots: readonly Snapshot[];
  /** Datasets below it. */
  readonly children: readonly string[];
}

export interface Snapshot {
  /** With the dataset's name. */
  readonly name: string;
  /** `managed`: made through CSI; `temporary`: for a copy; `foreign`: by somebody else. */
  readonly kind: 'managed' | 'temporary' | 'foreign';
  readonly clones: readonly string[];
  readonly isHeld: boolean;
}

/** What has to be read, of a dataset and everything below it. */
export const dependantProperties = ['clones', 'userrefs', userProperties.managed] as const;

export function dependantsOf(name: string, datasets: readonly Dataset[]): Dependants {
  const snapshots = datasets.filter((one) => one.name.startsWith(`${name}@`)).map(asSnapshot);
  const children = datasets.filter((one) => one.name.startsWith(`${name}/`) && !one.name.includes('@'));
  return { snapshots, children: children.map((one) => one.name) };
}

function asSnapshot(snapshot: Dataset): Snapshot {
  const own = snapshot.name.slice(snapshot.name.indexOf('@') + 1);
  // A snapshot inherits the mark of its dataset.
  const managed = ownValue(snapshot, userProperties.managed) === 'true';
  return {
    name: snapshot.name,
    kind: managed ? 'managed' : isTemporary(own) ? 'temporary' : 'foreign',
    clones: (valueIn(snapshot, 'clones') ?? '').split(',').filter((clone) => clone !== ''),
    isHeld: Number(valueIn(snapshot, 'userrefs') ?? 0) > 0,
  };
}
