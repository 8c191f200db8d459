/** Calls, operations and failures, for the status. */
import type { ActiveOperation } from '../../core/operations.ts';
import type { CallInFlight, FailedCall } from '../../pipeline/pipeline.ts';
import type { ObservedDriver } from './sources.ts';
import type { CallTold, FailureTold, OperationTold } from './status.ts';

/** Waiting longer than this, in seconds, is worth a look. */
export const stuckSeconds = 30;

export interface WorkTold {
  readonly calls: readonly CallTold[];
  readonly operations: readonly OperationTold[];
}

interface OwnedOperation extends ActiveOperation {
  readonly connection: string | undefined;
}

/** Calls and operations at `now`, oldest first. A call tells what the operation that it waits for is waiting for. */
export function workTold(driver: ObservedDriver, calls: readonly CallInFlight[], now: number): WorkTold {
  const operations = allOperations(driver);
  return {
    calls: calls.map((call) => callTold(call, operationOf(call, operations), now)).toSorted(byAge),
    operations: operations.map((operation) => operationTold(operation, now)).toSorted(byAge),
  };
}

/** How long the oldest call or operation has been going on, in seconds. */
export function longestWait({ calls, operations }: WorkTold): number {
  return Math.max(0, ...[...calls, ...operations].map(({ seconds }) => seconds));
}

export function failureTold(failed: FailedCall): FailureTold {
  const { method, requestId, endedAt, seconds, code, message, connection, driver } = failed;
  const about = aboutOf(failed.summary);
  return { method, ...about, requestId, connection, driver, at: iso(endedAt), seconds: round(seconds), code, message };
}

function allOperations(driver: ObservedDriver): readonly OwnedOperation[] {
  const ofConnections = (driver.connections?.() ?? []).flatMap(({ name, operations }) =>
    operations.map((operation) => ({ ...operation, connection: name })),
  );
  return [...ofConnections, ...driver.operations().map((operation) => ({ ...operation, connection: undefined }))];
}

/** Request ids can be the caller's own, and used twice: then the connection tells which is meant. */
function operationOf(call: CallInFlight, operations: readonly OwnedOperation[]): OwnedOperation | undefined {
  const candidates = operations.filter(({ callers }) => callers.includes(call.requestId));
  return candidates.find(({ title }) => title.startsWith(`${call.method} `)) ?? candidates[0];
}

function callTold(call: CallInFlight, operation: OwnedOperation | undefined, now: number): CallTold {
  const { method, requestId, startedAt, connection, driver } = call;
  const seconds = secondsSince(startedAt, now);
  const work = operation && {
    title: operation.title,
    seconds: secondsSince(operation.startedAt, now),
    joined: operation.requestId !== requestId,
  };
  return {
    method,
    ...aboutOf(call.summary),
    requestId,
    connection: connection ?? operation?.connection,
    driver,
    startedAt: iso(startedAt),
    seconds,
    waitingFor: operation?.waitingFor ?? call.waitingFor,
    operation: work,
    stuck: Math.max(seconds, work?.seconds ?? 0) > stuckSeconds,
  };
}

function operationTold(operation: OwnedOperation, now: number): OperationTold {
  const { title, requestId, connection, startedAt, waitingFor, callers } = operation;
  const seconds = secondsSince(startedAt, now);
  const stuck = seconds > stuckSeconds;
  return {
    title,
    requestId,
    connection,
    startedAt: iso(startedAt),
    seconds,
    waitingFor,
    callers: callers.length,
    stuck,
  };
}

/** Of what a call names, the first of these says best what it is about. */
const subjects = ['volumeId', 'snapshotId', 'name', 'sourceVolumeId'] as const;

function aboutOf(summary: Readonly<Record<string, unknown>>) {
  const subject = subjects.find((name) => summary[name]);
  const rest = Object.entries(summary).filter(([name]) => name !== subject);
  return {
    subject: subject && String(summary[subject]),
    details: Object.fromEntries(rest.map(([name, value]) => [name, String(value)])),
  };
}

const byAge = (a: { readonly seconds: number }, b: { readonly seconds: number }) => b.seconds - a.seconds;

const iso = (time: number) => new Date(time).toISOString();

const secondsSince = (time: number, now: number) => round(Math.max(0, now - time) / 1000);

const round = (seconds: number) => Math.round(seconds * 1000) / 1000;
