/** `driver: node-manual`: volumes that exist already, made by hand or by others. Nodes attach what their context says; nothing is made or deleted. */
import * as v from 'valibot';
import { advertisedFrom, commonEntries } from '../../config/common.ts';
import type { Driver, WholeNodeOperations } from '../../core/driver.ts';
import { createNodePlane, makePlane } from '../../node/plane.ts';
import { requireCapabilities } from '../common/capability-check.ts';
import type { DriverEnvironment, DriverType } from '../type.ts';
import { declaredVolume, declaredVolumes } from './declared-volumes.ts';
import { rulesOf } from './rules.ts';

const block = v.object({
  /**
   * Volumes by name, for orchestrators that ask for them: each with the context that its nodes get. Without any this is a node service only, and
   * volumes are registered with the orchestrator by hand, context included.
   */
  volumes: v.optional(v.record(v.string(), declaredVolume)),
});

const schema = v.object({ ...commonEntries, 'node-manual': v.optional(block, {}) });

type Options = v.InferOutput<typeof schema>;

const name = 'node-manual';

export const nodeManual: DriverType<Options> = {
  name,
  summary: 'volumes that exist already, described by hand',
  schema,
  example: { driver: name },
  create: createDriver,
};

function createDriver(options: Options, environment: DriverEnvironment): Driver {
  const { nodeId, connection, stateDirectory, run } = environment;
  const modes = options.csi?.access_modes;
  const declared = options[name].volumes ?? {};
  const advertised = advertisedFrom(options);
  // Where it is offered, orchestrators leave the group of files to the driver for all volumes, and most kinds here have nothing for that.
  const mountGroup = advertised.node?.includes('VOLUME_MOUNT_GROUP') ?? false;
  const plane = createNodePlane({
    info: { nodeId },
    run,
    settings: options.node,
    mountGroup,
    accessModes: modes,
    stateDirectory,
    connection,
  });
  return {
    name,
    constrained: false,
    advertised,
    ...(Object.keys(declared).length > 0 && {
      volumes: declaredVolumes(declared, name, environment, modes, makePlane({ run }).attachers),
    }),
    node: checked(plane, modes),
    close: async () => {},
  };
}

/** The node service, which takes what fits the kind of volume: nobody else has looked at these. */
function checked(plane: WholeNodeOperations, modes: Parameters<typeof rulesOf>[1]): WholeNodeOperations {
  return {
    ...plane,
    async stage(call, request) {
      requireCapabilities([request.capability], rulesOf(request.context, modes));
      await plane.stage(call, request);
    },
    async publish(call, request) {
      requireCapabilities([request.capability], rulesOf(request.context, modes));
      await plane.publish(call, request);
    },
  };
}
