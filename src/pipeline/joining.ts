/**
 * Joining as a decorator around a driver, so that neither the driver nor its caller knows of it.
 *
 * Every operation that changes something is run through the operations of its driver (core/operations.ts): equal requests share one run,
 * different requests for the same thing are ABORTED, and an operation outlives a caller who could not wait. Reading passes straight through.
 */
import type { CallContext } from '../core/call.ts';
import type {
  Driver,
  ExpansionOperations,
  NodeOperations,
  SnapshotOperations,
  VolumeOperations,
} from '../core/driver.ts';
import type { Claim, Operations } from '../core/operations.ts';
import { stableJson } from './stable-json.ts';

const minute = 60_000;

/**
 * How long an operation may take, in milliseconds, whoever waits for it. Filling a volume copies as much as there is, and ends by itself or when it
 * is called off: its limit is the longest that a timer takes. On a node, steps have limits of their own and this is the net below them.
 */
const limits = { copy: 2 ** 31 - 1, change: 60 * minute, node: 10 * minute } as const;

/** The same driver with its changing operations joined. `operations` outlives the driver when a connection is reloaded: give the same one again. */
export function joining(driver: Driver, operations: Operations): Driver {
  const run: Run = (call, title, request, claims, limitMs, work) =>
    operations.run(call, { title, key: stableJson([title, request, call.secrets]), claims, limitMs }, work);
  // What is still done for a volume that is to be removed, and that nobody waits for, is done in vain.
  const runLast: Run = (call, title, request, claims, limitMs, work) => {
    const key = stableJson([title, request, call.secrets]);
    return operations.run(call, { title, key, claims, limitMs, endsAbandoned: true }, work);
  };
  const { volumes, snapshots, expansion, publication, node } = driver;
  return {
    ...driver,
    ...(volumes && { volumes: joinVolumes(volumes, run, runLast) }),
    ...(snapshots && { snapshots: joinSnapshots(snapshots, run) }),
    ...(expansion && { expansion: joinExpansion(expansion, run) }),
    ...(publication && {
      publication: {
        publish: (call, request) =>
          run(
            call,
            `ControllerPublishVolume ${request.volumeId}`,
            request,
            [published(request.volumeId)],
            limits.change,
            (inner) => publication.publish(inner, request),
          ),
        unpublish: (call, volumeId, nodeId) =>
          run(call, `ControllerUnpublishVolume ${volumeId}`, nodeId, [published(volumeId)], limits.change, (inner) =>
            publication.unpublish(inner, volumeId, nodeId),
          ),
      },
    }),
    ...(node && { node: joinNode(node, run) }),
  };
}

type Run = <T>(
  call: CallContext,
  title: string,
  request: unknown,
  claims: readonly Claim[],
  limitMs: number,
  work: (call: CallContext) => Promise<T>,
) => Promise<T>;

const volume = (id: string): Claim => ({ on: `volume ${id}` });
const snapshot = (name: string): Claim => ({ on: `snapshot ${name}` });
const published = (id: string): Claim => ({ on: `publication of volume ${id}` });
const path = (at: string): Claim => ({ on: `path ${at}` });
const shared = (claim: Claim): Claim => ({ ...claim, shared: true });

function joinVolumes(volumes: VolumeOperations, run: Run, runLast: Run): VolumeOperations {
  const { modify } = volumes;
  return {
    ...volumes,
    create(call, spec) {
      const source = spec.source && shared({ on: `${spec.source.type} ${spec.source.id}` });
      const claims = [volume(volumes.idFor(spec)), ...(source ? [source] : [])];
      return run(call, `CreateVolume ${spec.name}`, spec, claims, limits.copy, (inner) => volumes.create(inner, spec));
    },
    delete: (call, id) =>
      runLast(call, `DeleteVolume ${id}`, undefined, [volume(id)], limits.change, (inner) => volumes.delete(inner, id)),
    ...(modify && {
      modify: (call, id, parameters) =>
        run(call, `ControllerModifyVolume ${id}`, parameters, [volume(id)], limits.change, (inner) =>
          modify(inner, id, parameters),
        ),
    }),
  };
}

function joinSnapshots(snapshots: SnapshotOperations, run: Run): SnapshotOperations {
  return {
    ...snapshots,
    create: (call, spec) =>
      run(
        call,
        `CreateSnapshot ${spec.name}`,
        spec,
        [{ on: `snapshot name ${spec.name}` }, shared(volume(spec.sourceVolumeId))],
        limits.copy,
        (inner) => snapshots.create(inner, spec),
      ),
    delete: (call, id) =>
      run(call, `DeleteSnapshot ${id}`, undefined, [snapshot(id)], limits.change, (inner) =>
        snapshots.delete(inner, id),
      ),
  };
}

function joinExpansion(expansion: ExpansionOperations, run: Run): ExpansionOperations {
  return {
    ...expansion,
    expand: (call, request) =>
      run(
        call,
        `ControllerExpandVolume ${request.volumeId}`,
        request,
        [volume(request.volumeId)],
        limits.change,
        (inner) => expansion.expand(inner, request),
      ),
  };
}

/**
 * Node calls exclude each other by path, not by volume: an orchestrator publishes one volume at several paths at once, and Nomad stages one
 * twice and does not retry an ABORTED.
 */
function joinNode(node: NodeOperations, run: Run): NodeOperations {
  const { stage, unstage, expand } = node;
  return {
    ...node,
    ...(stage && {
      stage: (call, request) =>
        run(call, `NodeStageVolume ${request.volumeId}`, request, [path(request.stagingPath)], limits.node, (inner) =>
          stage(inner, request),
        ),
    }),
    ...(unstage && {
      unstage: (call, request) =>
        run(call, `NodeUnstageVolume ${request.volumeId}`, request, [path(request.stagingPath)], limits.node, (inner) =>
          unstage(inner, request),
        ),
    }),
    publish: (call, request) =>
      run(
        call,
        `NodePublishVolume ${request.volumeId}`,
        request,
        [path(request.targetPath), ...(request.stagingPath ? [shared(path(request.stagingPath))] : [])],
        limits.node,
        (inner) => node.publish(inner, request),
      ),
    unpublish: (call, request) =>
      run(call, `NodeUnpublishVolume ${request.volumeId}`, request, [path(request.targetPath)], limits.node, (inner) =>
        node.unpublish(inner, request),
      ),
    ...(expand && {
      expand: (call, request) =>
        run(call, `NodeExpandVolume ${request.volumeId}`, request, [path(request.volumePath)], limits.node, (inner) =>
          expand(inner, request),
        ),
    }),
  };
}
