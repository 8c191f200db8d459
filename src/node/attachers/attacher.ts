/**
 * How a volume gets to a node: one attacher for every `node_attach_driver` of a volume context.
 *
 * To add one: write a module that exports a {@link MakeAttacher} and name it in attachers/index.ts.
 */
import type { Command } from '../../backends/exec/run.ts';
import type { CallContext } from '../../core/call.ts';
import type { VolumeCapability, VolumeContext } from '../../core/volume.ts';
import type { Mount, MountTable } from '../mount-table.ts';
import type { ShareFamily } from '../share-source.ts';
import type { NodeTools } from '../tools.ts';

export interface AttachRequest {
  readonly volumeId: string;
  readonly context: VolumeContext;
  readonly publishContext: Readonly<Record<string, string>>;
  readonly capability: VolumeCapability;
  /** The table the call began with. */
  readonly table: MountTable;
}

/**
 * What an attached volume is on this node. The node plane does the rest: it mounts, formats, grows and compares.
 *
 * - `directory`: it is bind-mounted.
 * - `device`: a block device; it holds a file system, or is published as it is.
 * - `mount`: something that mount(8) knows by its type, such as a share of a server. `env` carries what must not be seen in arguments.
 * - `command`: something that only a program of its own can mount. `mounting` gives the command that does, which ends when it is mounted.
 */
export type Attachment =
  | { readonly type: 'directory'; readonly path: string }
  | { readonly type: 'device'; readonly path: string }
  | {
      readonly type: 'mount';
      readonly source: string;
      readonly fsType: string;
      readonly options: readonly string[];
      readonly env?: Readonly<Record<string, string>> | undefined;
      /** Present when it is a share of a server. */
      readonly share?: Share | undefined;
    }
  | {
      readonly type: 'command';
      readonly source: string;
      readonly fsType: string;
      /** Whether a mount shows this. */
      shownBy(mount: Mount): boolean;
      mounting(place: string, options: readonly string[]): Command;
    };

/** What a share of a server needs beyond its source and type. */
export interface Share {
  readonly family: ShareFamily;
  /** As {@link hostKey} spells it. */
  readonly host: string;
  /** Whether a mount of its family shows this share: the kernel may spell its source in another way. */
  shownBy(mount: Mount): boolean;
  /** How it is mounted with these flags of the request and the configuration; of credentials among them nothing is left in the options. */
  mounting(flags: readonly string[]): ShareMounting;
}

export interface ShareMounting {
  readonly options: readonly string[];
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/**
 * What tells a volume from all others on this node, and is enough to detach it: an IQN and a LUN, an NQN and a namespace. Without secrets, for it is
 * kept in a file of the node. Two volumes with equal identities are one.
 */
export type Identity = Readonly<Record<string, string>>;

export interface Attacher {
  /** True when several nodes can have the block devices that it attaches at the same time. */
  readonly reachedByMany?: true;
  /** What the volume is known by, read from its context alone. Throws INVALID_ARGUMENT for a context that lacks something. */
  identityOf?(request: Pick<AttachRequest, 'context' | 'publishContext'>): Identity;
  /** Makes the volume reachable. Repeated: the same answer. Throws INVALID_ARGUMENT for a context that lacks something. */
  attach(call: CallContext, request: AttachRequest): Promise<Attachment>;
  /** What the block device `major:minor` is, if this attacher can have attached it. Reads sysfs only. */
  identify?(device: string): Promise<Identity | undefined>;
  /**
   * Takes back what attach did. It is asked for when the volume is mounted nowhere on this node any more; nothing is attached under this identity
   * meanwhile. What other volumes use stays. Repeated, and for what was never attached: success. `others` gives the identities of all other volumes
   * that have a record on this node, those included that are just being attached: for what several volumes share, such as a session.
   */
  detach?(call: CallContext, identity: Identity, others?: () => Promise<readonly Identity[]>): Promise<void>;
  /** Makes the kernel see the new size of a device (`major:minor`) if it is this attacher's: `wantedBytes` at least, where that is known. */
  rescan?(call: CallContext, device: string, wantedBytes?: number): Promise<void>;
}

export type MakeAttacher = (tools: NodeTools) => Attacher;
