/** The second half of a ZFS driver: how a dataset gets to the nodes. */
import type { Step, StepResult } from '../../backends/shell/steps.ts';
import type { Dataset } from '../../backends/zfs/dataset.ts';
import type { CallContext } from '../../core/call.ts';
import type { Condition, VolumeContext, VolumeSpec } from '../../core/volume.ts';

export interface Shared {
  /** What nodes need, `node_attach_driver` included. Kept as it is with the volume. */
  readonly context: VolumeContext;
  /** User properties that are kept with the volume. */
  readonly properties?: Readonly<Record<string, string>> | undefined;
}

export interface ShareRequest {
  readonly volumeId: string;
  readonly dataset: string;
  readonly parameters: VolumeSpec['parameters'];
}

export interface ShownDevice {
  /** IQN or NQN. */
  readonly name: string;
  /** `/dev/zvol/…`. */
  readonly device: string;
  /** Not only half: nodes can reach it. */
  readonly isShared: boolean;
  /** Takes it back. */
  remove(call: CallContext): Promise<void>;
}

/** How it is seen whether the server still has what {@link Share.publish} made. */
export interface ShareLook {
  /** It changes nothing, and the next step is run whatever it says. */
  readonly step: Step;
  /** Whether it looks at what belongs to this dataset. */
  isOf(dataset: Dataset): boolean;
  /** Undefined when all is there, or when nothing can be said. */
  trouble(result: StepResult): string | undefined;
}

export interface Share {
  /** Properties that the dataset is made with. With them alone it may be shared already. */
  readonly properties: Readonly<Record<string, string>>;
  /** Properties that {@link Share.complete} and the others want to see. */
  readonly wants: readonly string[];
  /**
   * What there is to tell about a dataset that is shared by its properties alone: no command is needed. Undefined: {@link Share.publish} is.
   */
  byProperties?(dataset: Dataset): Shared | undefined;
  /** Shares the dataset. Repeated: the same answer. */
  publish(call: CallContext, request: ShareRequest, dataset: Dataset): Promise<Shared>;
  /** Undefined: the dataset tells all. Without the dataset, the name is the one that would be given now. */
  look?(request: ShareRequest, dataset?: Dataset): ShareLook;
  /** Takes the share back, also when only part of it is there. The dataset is still there; it is to be destroyed. */
  withdraw?(call: CallContext, request: Omit<ShareRequest, 'parameters'>, dataset: Dataset | undefined): Promise<void>;
  /** Block devices that are shared, or half shared, under this connection's names. Undefined: nothing but properties shares them. */
  shown?(call: CallContext): Promise<readonly ShownDevice[]>;
  /** Undefined: nothing is wrong with the share, as far as the dataset tells. */
  conditionOf?(dataset: Dataset): Condition | undefined;
  /** Throws INVALID_ARGUMENT when the share's name cannot be made for this volume. */
  check?(request: ShareRequest): void;
}
