/** What there is of a volume besides itself: snapshots, clones of them, copies for which they were made. */
import { type Dataset, numberOf, ownValue, valueIn } from '../../backends/zfs/dataset.ts';
import { isTemporary, userProperties } from './user-properties.ts';

export interface Dependants {
  readonly snapshots: readonly Snapshot[];
  /** Datasets below it. */
  readonly children: readonly string[];
}

export interface Snapshot {
  /** With the dataset's name. */
  readonly name: string;
  /** `managed`: made through CSI; `temporary`: for a copy, or deleted and there for its clones alone; `foreign`: by somebody else. */
  readonly kind: 'managed' | 'temporary' | 'foreign';
  readonly clones: readonly string[];
  readonly isHeld: boolean;
  /** The transaction group: a later one has a higher number. */
  readonly createdIn: number;
}

/** What has to be read, of a dataset and everything below it. */
export const dependantProperties = [
  'clones',
  'userrefs',
  'defer_destroy',
  'createtxg',
  userProperties.managed,
] as const;

export function dependantsOf(name: string, datasets: readonly Dataset[]): Dependants {
  const snapshots = datasets.filter((one) => one.name.startsWith(`${name}@`)).map(asSnapshot);
  const children = datasets.filter((one) => one.name.startsWith(`${name}/`) && !one.name.includes('@'));
  return { snapshots, children: children.map((one) => one.name) };
}

function asSnapshot(snapshot: Dataset): Snapshot {
  const own = snapshot.name.slice(snapshot.name.indexOf('@') + 1);
  // A snapshot inherits the mark of its dataset.
  const managed = ownValue(snapshot, userProperties.managed) === 'true';
  const passing = isTemporary(own) || valueIn(snapshot, 'defer_destroy') === 'on';
  return {
    name: snapshot.name,
    kind: passing ? 'temporary' : managed ? 'managed' : 'foreign',
    clones: (valueIn(snapshot, 'clones') ?? '').split(',').filter((clone) => clone !== ''),
    isHeld: Number(valueIn(snapshot, 'userrefs') ?? 0) > 0,
    createdIn: numberOf(snapshot, 'createtxg') ?? 0,
  };
}
