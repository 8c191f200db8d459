/** How the pipeline treats each CSI method: what its log line says, how long it may take, and whether it is worth a line at all. */

/** Reading has no limit of its own further down, and some callers (Nomad) set no deadline. */
const readLimitMs = 120_000;

interface Treatment {
  /** Called by orchestrators on a clock: not worth a line at `info` while it succeeds. */
  readonly routine?: true;
  /** Milliseconds; undefined: the operation has its own limits. */
  readonly limitMs?: number;
}

const reading: Treatment = { limitMs: readLimitMs };
const routine: Treatment = { routine: true, limitMs: readLimitMs };

/** Methods not named change something. */
const treatments: Readonly<Record<string, Treatment>> = {
  Probe: routine,
  GetPluginInfo: routine,
  GetPluginCapabilities: routine,
  ControllerGetCapabilities: routine,
  NodeGetCapabilities: routine,
  NodeGetInfo: routine,
  NodeGetVolumeStats: routine,
  GetCapacity: routine,
  ListVolumes: reading,
  ListSnapshots: reading,
  ControllerGetVolume: reading,
  GetSnapshot: reading,
  ValidateVolumeCapabilities: reading,
};

const changing: Treatment = {};

export function treatmentOf(method: string): Treatment {
  return treatments[method] ?? changing;
}

const told = [
  'name',
  'volumeId',
  'snapshotId',
  'sourceVolumeId',
  'nodeId',
  'stagingTargetPath',
  'targetPath',
  'volumePath',
];

/** Ids, names and paths of a request, for its log line. */
export function summaryOf(request: object): Readonly<Record<string, unknown>> {
  const fields = request as Readonly<Record<string, unknown>>;
  return Object.fromEntries(told.map((name) => [name, fields[name]]).filter(([, value]) => value));
}
