/** Where metrics and the status page get what they tell. */
import type { Driver } from '../../core/driver.ts';
import type { Logger } from '../../core/logger.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import type { RecentFailures } from '../../pipeline/recent-failures.ts';
import type { ProxyDriver } from '../../proxy/index.ts';

/** A driver, and what can be told of it while it serves; only a proxy has connections. */
export type ObservedDriver = Driver &
  Pick<ProxyDriver, 'operations'> &
  Partial<Pick<ProxyDriver, 'connections' | 'lookAtConnections' | 'explainNodeTopology'>>;

export interface Sources {
  readonly driver: ObservedDriver;
  readonly pipeline: Pick<Pipeline, 'inFlight'>;
  readonly failures: RecentFailures;
  readonly plugin: PluginFacts;
  readonly log: Logger;
}

/** What does not change while the process lives. */
export interface PluginFacts {
  /** `--csi-name`. */
  readonly name: string;
  readonly nodeName: string;
  readonly modes: readonly string[];
  readonly version: string;
  readonly commit: string;
  /** Where the orchestrator reaches it. */
  readonly addresses: readonly string[];
}
