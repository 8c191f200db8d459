/**
 * democratic-csi's figures, measured once with local-hostpath on a machine with 2 cores that had other work to do (Node.js 20, Debian 12).
 * CPU time is the steady part and comparable between machines of a kind; calls per second are not.
 */
export const recordedName = 'democratic-csi (recorded)';

export const recordedStart = { wallMs: 819, cpuMs: 760, rssMiB: 106.7, pssMiB: 79.4 } as const;

export const recordedAfterCalls = { rssMiB: 125.3, pssMiB: 96.0 } as const;

export interface RecordedCase {
  readonly cpuMs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const row = (perSecond: number, p50Ms: number, p99Ms: number, cpuMs: number): RecordedCase => ({
  perSecond,
  p50Ms,
  p99Ms,
  cpuMs,
});

/** By case and concurrency. */
export const recordedCases: Readonly<Record<string, Readonly<Record<number, RecordedCase>>>> = {
  Probe: { 1: row(634, 1.05, 7.74, 0.53), 32: row(2310, 12.79, 34.24, 0.24) },
  NodeGetInfo: { 1: row(910, 0.95, 5.57, 0.47), 32: row(2222, 12.63, 41.44, 0.21) },
  GetCapacity: { 1: row(202, 4.39, 12.27, 4.35), 32: row(217, 140, 218, 3.83) },
  'Create+Delete': { 1: row(132, 6.45, 19.94, 4.87), 32: row(164, 191, 257, 4.66) },
  'Publish+Unpublish': { 1: row(27.41, 34.41, 87.66, 28.86), 32: row(31.94, 973, 1137, 27.8) },
};

/** Programs it starts for one call. */
export const recordedCommands: Readonly<Record<string, number>> = {
  CreateVolume: 1,
  DeleteVolume: 0,
  GetCapacity: 1,
  NodeStageVolume: 2,
  NodePublishVolume: 4,
  NodeGetVolumeStats: 9,
  NodeUnpublishVolume: 3,
  NodeUnstageVolume: 15,
};
