/**
 * Counters of what the process does, in the ecosystem's names and units (seconds, `_total`); read out by whoever exposes them. Import it only
 * then: the library takes time to load.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { CopyMeter } from '../core/copies.ts';
import type { Meter } from './meter.ts';

export interface Metrics extends Meter {
  readonly registry: Registry;
}

/** Upper bounds in seconds, as kubernetes-csi's `csi_plugin_operations_seconds` has them. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Most programs are done in milliseconds; the slow ones are those that are looked for. */
const backendBuckets = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 30, 60, 300, 900];

/** `driverName`: the plugin's name, `--csi-name`. */
export function createMetrics(driverName: string): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const duration = new Histogram({
    name: 'csi_plugin_operations_seconds',
    help: 'Duration of calls by outcome.',
    labelNames: ['driver_name', 'method_name', 'grpc_status_code', 'connection', 'driver'],
    buckets,
    registers,
  });
  const inFlight = new Gauge({
    name: 'switchboard_calls_in_flight',
    help: 'Calls being answered now.',
    labelNames: ['method_name'],
    registers,
  });
  const backend = new Histogram({
    name: 'switchboard_backend_request_duration_seconds',
    help: 'Duration of what was asked of storage and host by outcome. Backend "exec": programs of the host.',
    labelNames: ['backend', 'request', 'outcome'],
    buckets: backendBuckets,
    registers,
  });
  return {
    ...copyMetrics(registry),
    registry,
    callStarted: (method) => inFlight.inc({ method_name: method }),
    callEnded({ method, code, connection, driver, seconds }) {
      inFlight.dec({ method_name: method });
      duration.observe(
        { driver_name: driverName, method_name: method, grpc_status_code: code, connection, driver },
        seconds,
      );
    },
    backendAnswered: ({ seconds, ...labels }) => backend.observe(labels, seconds),
  };
}

function copyMetrics(registry: Registry): CopyMeter {
  const registers = [registry];
  const labelNames = ['connection', 'engine'] as const;
  const copies = new Gauge({
    name: 'switchboard_copies',
    help: 'Copies of whole volumes (snapshots, clones, restores) that run now or wait for their turn.',
    labelNames: [...labelNames, 'state'],
    registers,
  });
  const bytes = new Counter({
    name: 'switchboard_copied_bytes_total',
    help: 'Bytes that copies of whole volumes have gone through. Those of engine "filecopy" are measured from time to time, so short ones do not count.',
    labelNames,
    registers,
  });
  const ended = new Counter({
    name: 'switchboard_copies_ended_total',
    help: 'Copies of whole volumes that ended, by outcome: ok, failed, cancelled.',
    labelNames: [...labelNames, 'outcome'],
    registers,
  });
  return {
    copiesChanged(kind, state, by) {
      copies.inc({ ...kind, state }, by);
      // A counter that is not there cannot be told from one that nobody asks for.
      bytes.inc({ ...kind }, 0);
    },
    bytesCopied: (kind, count) => bytes.inc({ ...kind }, count),
    copyEnded: (kind, outcome) => ended.inc({ ...kind, outcome }),
  };
}
