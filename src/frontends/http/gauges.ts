/** Metrics that are looked up when they are read: connections, work in progress, the process, the build. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Observer } from './observer.ts';
import type { Sources } from './sources.ts';
import { longestWait, workTold } from './status-work.ts';

/** Milliseconds between two looks at the event loop: its lag is told in these steps, and a process with nothing to do wakes up for each. */
const lagResolutionMs = 20;

const connectionStates = ['ok', 'broken', 'idle'] as const;

/** Adds them to those that are counted. */
export function addGauges(registry: Registry, { driver, pipeline, plugin }: Sources, observer: Observer): void {
  const registers = [registry];
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: lagResolutionMs });

  new Gauge({
    name: 'switchboard_build_info',
    help: 'Always 1; the labels say which build this is.',
    labelNames: ['version', 'commit'],
    registers,
  }).set({ version: plugin.version, commit: plugin.commit }, 1);
  new Gauge({
    name: 'switchboard_ready',
    help: 'Whether the plugin can serve: 1 or 0.',
    registers,
    collect() {
      this.set(observer.ready.latest().state === 'known' ? 1 : 0);
    },
  });
  new Gauge({
    name: 'switchboard_oldest_call_age_seconds',
    help: 'How long the oldest call, or work that goes on without its caller, has been in progress; 0 when there is none.',
    registers,
    collect() {
      this.set(longestWait(workTold(driver, pipeline.inFlight(), Date.now())));
    },
  });
  new Gauge({
    name: 'switchboard_operations_in_flight',
    help: 'Work in progress by connection, also such whose callers have gone. Without a connection: work on this node.',
    labelNames: ['connection'],
    registers,
    collect() {
      this.reset();
      this.set({ connection: '' }, driver.operations().length);
      for (const { name, operations } of driver.connections?.() ?? []) {
        this.set({ connection: name }, operations.length);
      }
    },
  });
  new Gauge({
    name: 'switchboard_connection_state',
    help: '1 for the state that a connection is in: ok, broken (its file cannot be used), idle (not loaded now).',
    labelNames: ['connection', 'state'],
    registers,
    collect() {
      this.reset();
      for (const { name, state } of driver.connections?.() ?? []) {
        for (const one of connectionStates) this.set({ connection: name, state: one }, one === state ? 1 : 0);
      }
    },
  });
}

/** What `/metrics/capacity` tells: it asks the storage of every connection, so how often is up to who reads it. */
export function capacityMetrics(observer: Observer): Promise<string> {
  const registry = new Registry();
  const available = new Gauge({
    name: 'switchboard_connection_available_bytes',
    help: 'Free space for volumes, of connections whose storage can tell.',
    labelNames: ['connection'],
    registers: [registry],
  });
  const answers = new Gauge({
    name: 'switchboard_connection_answers',
    help: 'Whether the storage of a connection answered when it was asked for its free space: 1 or 0.',
    labelNames: ['connection'],
    registers: [registry],
  });
  for (const connection of observer.askable()) {
    const answer = observer.space(connection).latest();
    answers.set({ connection }, answer.state === 'known' ? 1 : 0);
    if (answer.state === 'known' && answer.value !== 'unknown') {
      available.set({ connection }, answer.value.availableBytes);
    }
  }
  return registry.metrics();
}
