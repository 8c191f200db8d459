/**
 * How a volume gets to a node: one attacher for every `node_attach_driver` of a volume context.
 *
 * To add one: write a module that exports a {@link MakeAttacher} and name it in attachers/index.ts.
 */
import type { CallContext } from '../../core/call.ts';
import type { VolumeCapability, VolumeContext } from '../../core/volume.ts';
import type { Mount, MountTable } from '../mount-table.ts';
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
    };

/** What was just unmounted and is, as far as the mount table tells, mounted nowhere else on this node. */
export interface Released {
  readonly volumeId: string;
  /**
   * Empty when nothing was mounted any more: an earlier unstage may have ended between unmounting and detaching. Then the volume may still be
   * in use at other places, and an attacher that knows its volumes by id has to make sure that it is not.
   */
  readonly mounts: readonly Mount[];
  /** `major:minor` of the block device that was mounted or published. */
  readonly device?: string | undefined;
}

export interface Attacher {
  /** Makes the volume reachable. Repeated: the same answer. Throws INVALID_ARGUMENT for a context that lacks something. */
  attach(call: CallContext, request: AttachRequest): Promise<Attachment>;
  /**
   * Takes back what attach did. Every attacher is asked, because unstage and unpublish come without the volume context: it must do nothing
   * unless what was released is provably its own.
   */
  detach?(call: CallContext, released: Released): Promise<void>;
  /** Makes the kernel see the new size of a device (`major:minor`) if it is this attacher's. */
  rescan?(call: CallContext, device: string): Promise<void>;
}

export type MakeAttacher = (tools: NodeTools) => Attacher;
