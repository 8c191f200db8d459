/**
 * The keys that the configuration of every driver may have.
 *
 * A driver's schema is `v.object({ ...commonEntries, 'local-hostpath': v.object({ … }) })`. Schemas use plain `v.object`, which drops keys it
 * does not know: the loader warns about those and goes on.
 */
import * as v from 'valibot';
import type { AdvertisedCapabilities } from '../core/capability-names.ts';
import {
  controllerCapabilityNames,
  expansionNames,
  nodeCapabilityNames,
  pluginCapabilityNames,
} from '../core/capability-names.ts';
import { accessModes } from '../core/volume.ts';
import { ignored } from './ignored.ts';

const strings = v.record(v.string(), v.string());
const stringList = v.array(v.string());
const windowsOnly = 'it is for Windows only';

/** A list of capability names. `UNKNOWN` means nothing, as in the CSI enumerations, and is dropped. */
function capabilityList<const T extends string>(names: readonly T[]) {
  return v.optional(
    v.pipe(
      v.array(v.picklist([...names, 'UNKNOWN'])),
      v.transform((list) => list.filter((name): name is T => name !== 'UNKNOWN')),
    ),
  );
}

const service = v.object({
  identity: v.optional(
    v.object({
      capabilities: v.optional(
        v.object({
          service: capabilityList(pluginCapabilityNames),
          volume_expansion: capabilityList(expansionNames),
        }),
      ),
    }),
  ),
  controller: v.optional(
    v.object({ capabilities: v.optional(v.object({ rpc: capabilityList(controllerCapabilityNames) })) }),
  ),
  node: v.optional(v.object({ capabilities: v.optional(v.object({ rpc: capabilityList(nodeCapabilityNames) })) })),
});

/** Mount options, as a list or as mount(8) takes them: separated by commas, of which those within double quotes do not separate. */
const mountFlags = v.pipe(
  v.union([v.string(), stringList], 'mount options separated by commas'),
  v.transform((flags): readonly string[] =>
    (typeof flags === 'string' ? [flags] : flags)
      .flatMap((text) => text.match(/(?:"[^"]*"|[^,])+/g) ?? [])
      .map((flag) => flag.trim())
      .filter((flag) => flag !== ''),
  ),
);

const node = v.object({
  mount: v.optional(
    v.object({
      mount_flags: v.optional(mountFlags),
      checkFilesystem: v.optional(
        v.record(
          v.string(),
          v.object({
            enabled: v.optional(v.boolean(), false),
            customOptions: v.optional(stringList, []),
            customFilesystemOptions: v.optional(stringList, []),
          }),
        ),
      ),
    }),
  ),
  format: v.optional(v.record(v.string(), v.object({ customOptions: v.optional(stringList, []) }))),
  csiProxy: v.optional(
    ignored(
      v.object({
        enabled: v.optional(v.boolean()),
        services: v.optional(
          v.record(v.string(), v.object({ version: v.optional(v.string()), connection: v.optional(v.string()) })),
        ),
      }),
      windowsOnly,
    ),
  ),
});

const contextSource = v.object({ driver: v.optional(v.picklist(['memory', 'kubernetes'])) });

const privateOptions = v.object({
  csi: v.optional(
    v.object({
      volume: v.optional(
        v.object({
          volumeContext: v.optional(ignored(contextSource, windowsOnly)),
          // The name that democratic-csi's own example file uses for it.
          derivedContext: v.optional(ignored(contextSource, windowsOnly)),
          idTemplate: v.optional(v.string()),
          idHash: v.optional(v.object({ strategy: v.optional(v.picklist(['md5', 'crc8', 'crc16', 'crc32'])) })),
          deleteStrategy: v.optional(v.picklist(['retain', 'delete'])),
        }),
      ),
    }),
  ),
  volume_context: v.optional(v.record(v.string(), strings)),
});

const perDriver = v.object({
  topology: v.optional(v.array(v.object({ requirements: v.optional(strings, {}), extra: v.optional(strings, {}) }))),
  nodeIdType: v.optional(v.picklist(['nodeName', 'hostname', 'iqn', 'nqn'])),
  nodeIdMap: v.optional(strings),
  nodeIdTemplate: v.optional(v.string()),
});

/** Spread these into the entries of each driver's schema. */
export const commonEntries = {
  driver: v.string(),
  instance_id: v.optional(v.string()),
  csi: v.optional(v.object({ access_modes: v.optional(v.array(v.picklist(accessModes))) })),
  service: v.optional(service),
  node: v.optional(node),
  _private: v.optional(privateOptions),
  /** In a connection file: how the proxy places and addresses this connection. The proxy's own schema replaces it. */
  proxy: v.optional(v.object({ perDriver: v.optional(perDriver) })),
} as const;

const commonSchema = v.object(commonEntries);

/** The common keys after validation. */
export type CommonOptions = v.InferOutput<typeof commonSchema>;

/** The `node` key after validation: how file systems are checked, made and mounted on nodes. */
export type NodeOptions = v.InferOutput<typeof node>;

/** The `proxy.perDriver` key of a connection file after validation. */
export type ConnectionOptions = v.InferOutput<typeof perDriver>;

/** The capability lists that the configuration sets in place of the driver's own; undefined where it sets none. */
export function advertisedFrom(common: Pick<CommonOptions, 'service'>): AdvertisedCapabilities {
  const identity = common.service?.identity?.capabilities;
  return {
    plugin: identity?.service,
    expansion: identity?.volume_expansion,
    controller: common.service?.controller?.capabilities?.rpc,
    node: common.service?.node?.capabilities?.rpc,
  };
}
