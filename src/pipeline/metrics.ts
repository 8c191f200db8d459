/** Counters of what the process does, in the ecosystem's names and units (seconds, `_total`); read out by whoever exposes them. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface CallOutcome {
  readonly method: string;
  /** gRPC status code name. */
  readonly code: string;
  readonly connection: string;
  readonly driver: string;
  readonly seconds: number;
}

export interface Metrics {
  readonly registry: Registry;
  callStarted(method: string): void;
  callEnded(outcome: CallOutcome): void;
  /** A program of the host was started. */
  commandStarted(program: string): void;
}

/** Upper bounds in seconds, as kubernetes-csi's `csi_plugin_operations_seconds` has them. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

export function createMetrics(driverName: string): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const duration = new Histogram({
    name: 'csi_plugin_operations_seconds',
    help: 'Duration of CSI calls by outcome.',
    labelNames: ['driver_name', 'method_name', 'grpc_status_code', 'connection', 'driver'],
    buckets,
    registers,
  });
  const inFlight = new Gauge({
    name: 'switchboard_calls_in_flight',
    help: 'CSI calls being answered now.',
    labelNames: ['method_name'],
    registers,
  });
  const commands = new Counter({
    name: 'switchboard_host_commands_total',
    help: 'Programs of the host that were started.',
    labelNames: ['program'],
    registers,
  });
  return {
    registry,
    callStarted: (method) => inFlight.inc({ method_name: method }),
    callEnded({ method, code, connection, driver, seconds }) {
      inFlight.dec({ method_name: method });
      duration.observe(
        { driver_name: driverName, method_name: method, grpc_status_code: code, connection, driver },
        seconds,
      );
    },
    commandStarted: (program) => commands.inc({ program }),
  };
}
