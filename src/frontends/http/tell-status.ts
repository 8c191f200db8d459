/** Puts the status together. It waits for nothing longer than a moment: what is not known by then is said to be asked. */
import { attentionTo } from './attention.ts';
import { ask, type NodeFacts, type Observer } from './observer.ts';
import type { Answer } from './question.ts';
import type { PluginFacts, Sources } from './sources.ts';
import type { NodeTold, PluginTold, Status } from './status.ts';
import { connectionsTold } from './status-connections.ts';
import { failureTold, workTold } from './status-work.ts';

/** Milliseconds a status may wait for answers, twice, so that the first one is usually whole. */
const patienceMs = 250;

export async function tellStatus(sources: Sources, observer: Observer): Promise<Status> {
  const { driver, pipeline, failures, plugin } = sources;
  await ask(patienceMs, [observer.ready, observer.files, ...(observer.node ? [observer.node] : [])]);
  observer.keepOnly((driver.connections?.() ?? []).map(({ name }) => name));
  await ask(patienceMs, observer.askable().map(observer.space));

  const now = Date.now();
  const ready = observer.ready.latest();
  const files = observer.files.latest();
  const told: Omit<Status, 'attention'> = {
    time: new Date(now).toISOString(),
    ready: ready.state === 'known',
    notReadyBecause: reasonNotReady(ready),
    plugin: pluginTold(plugin, driver.name),
    node: observer.node && nodeTold(observer.node.latest()),
    filesProblem: files.state === 'failed' ? files.message : undefined,
    connections: connectionsTold(driver, observer),
    ...workTold(driver, pipeline.inFlight(), now),
    failures: failures.list().map(failureTold),
  };
  return { ...told, attention: attentionTo(told) };
}

/** Why the plugin cannot serve, or undefined. */
export function reasonNotReady(ready: Answer<void>): string | undefined {
  if (ready.state === 'known') return undefined;
  return ready.state === 'failed' ? ready.message : 'it is still being found out';
}

function pluginTold(plugin: PluginFacts, driver: string): PluginTold {
  const seconds = process.uptime();
  return {
    ...plugin,
    driver,
    runtime: 'Deno' in globalThis ? `Deno (Node.js ${process.version})` : `Node.js ${process.version}`,
    pid: process.pid,
    startedAt: new Date(Date.now() - seconds * 1000).toISOString(),
    uptimeSeconds: Math.round(seconds),
    memoryBytes: process.memoryUsage.rss(),
  };
}

function nodeTold(answer: Answer<NodeFacts>): NodeTold {
  if (answer.state !== 'known') {
    return {
      state: answer.state,
      topology: [],
      skipped: [],
      problem: answer.state === 'failed' ? answer.message : undefined,
    };
  }
  const { nodeId, explanation, problem } = answer.value;
  const { segments, outcomes } = explanation;
  const inForce = outcomes.filter(({ segment, note }) => segment && note === undefined);
  return {
    state: 'known',
    nodeId,
    topology: Object.entries(segments).map(([key, value]) => ({
      key,
      value,
      rule: inForce.find(({ segment }) => segment?.key === key)?.rule,
    })),
    skipped: outcomes.flatMap(({ rule, note, warning }) => (note === undefined ? [] : [{ rule, why: note, warning }])),
    problem,
  };
}
