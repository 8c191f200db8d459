/** What a person who wonders why his volume is stuck should read first. */
import { formatAge } from './ages.ts';
import type { Attention, CallTold, OperationTold, Status } from './status.ts';
import type { ConnectionTold } from './status-connections.ts';

/** Most pressing first. */
export function attentionTo(status: Omit<Status, 'attention'>): readonly Attention[] {
  const { ready, notReadyBecause = '', operations, calls, connections, filesProblem, node } = status;
  // Calls that wait for an operation are told with it.
  const alone = calls.filter((call) => call.stuck && call.operation === undefined);
  return [
    ...(ready ? [] : [{ kind: 'not-ready', about: 'Not ready', text: notReadyBecause } as const]),
    ...operations.filter(({ stuck }) => stuck).map(stuckOperation),
    ...alone.map(stuckCall),
    ...(filesProblem ? [{ kind: 'no-answer', about: 'The folder of connections', text: filesProblem } as const] : []),
    ...connections.flatMap(connectionTrouble),
    ...(node?.problem ? [{ kind: 'node', about: 'This node', text: node.problem } as const] : []),
    ...(node?.skipped ?? [])
      .filter(({ warning }) => warning)
      .map(({ rule, why }) => ({ kind: 'node', about: 'This node’s topology', text: `${rule}: ${why}` }) as const),
  ];
}

function stuckOperation({ title, connection, seconds, waitingFor, callers }: OperationTold): Attention {
  const who =
    callers === 0
      ? '; nobody waits for it any more, and the same call again will find the result'
      : callers === 1
        ? ''
        : `; ${callers} calls wait for it`;
  return { kind: 'stuck', about: where(title, connection), text: `${wait(seconds, waitingFor)}${who}` };
}

function stuckCall({ method, subject, connection, seconds, waitingFor }: CallTold): Attention {
  const title = subject === undefined ? method : `${method} ${subject}`;
  return { kind: 'stuck', about: where(title, connection), text: wait(seconds, waitingFor) };
}

function where(title: string, connection: string | undefined): string {
  return connection === undefined ? title : `${title} on ${connection}`;
}

function wait(seconds: number, waitingFor: string | undefined): string {
  const what = waitingFor === undefined ? 'it does not say what it waits for' : `waiting for ${waitingFor}`;
  return `${formatAge(seconds)} now, ${what}`;
}

function connectionTrouble({ name, driver, state, problem, capacity }: ConnectionTold): readonly Attention[] {
  const about = name === '' ? 'The storage' : `Connection ${name}`;
  const inForce = driver === undefined ? 'its calls fail until that is repaired' : 'the last good version stays in use';
  return [
    ...(state === 'broken' ? [{ kind: 'broken-connection', about, text: `${problem}; ${inForce}` } as const] : []),
    ...(capacity.state === 'failed'
      ? [{ kind: 'no-answer', about, text: `it was asked for its free space: ${capacity.problem}` } as const]
      : []),
  ];
}
