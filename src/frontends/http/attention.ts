/** What a person who wonders why his volume is stuck should read first. */
import { formatAge } from './ages.ts';
import type { Attention, CallTold, ConnectionTold, OperationTold, Status } from './status.ts';

/** Most pressing first. */
export function attentionTo(status: Omit<Status, 'attention'>): readonly Attention[] {
  const { ready, notReadyBecause, operations, calls, connections, filesProblem, node } = status;
  // Calls that wait for an operation are told with it.
  const alone = calls.filter((call) => call.stuck && call.operation === undefined);
  return [
    ...(ready ? [] : [{ kind: 'not-ready', text: `Not ready: ${notReadyBecause}` } as const]),
    ...operations.filter(({ stuck }) => stuck).map(stuckOperation),
    ...alone.map(stuckCall),
    ...(filesProblem ? [{ kind: 'no-answer', text: `The folder of connections: ${filesProblem}` } as const] : []),
    ...connections.flatMap(connectionTrouble),
    ...(node?.problem ? [{ kind: 'node', text: `This node: ${node.problem}` } as const] : []),
    ...(node?.skipped ?? [])
      .filter(({ warning }) => warning)
      .map(({ rule, why }) => ({ kind: 'node', text: `This node’s topology, ${rule}: ${why}` }) as const),
  ];
}

function stuckOperation({ title, connection, seconds, waitingFor, callers }: OperationTold): Attention {
  const callersText =
    callers === 0
      ? 'Nobody waits for it now; the same call again will find the result.'
      : callers === 1
        ? ''
        : `${callers} calls wait for it.`;
  return { kind: 'stuck', text: `${wait(title, connection, seconds, waitingFor)} ${callersText}`.trim() };
}

function stuckCall({ method, subject, connection, seconds, waitingFor }: CallTold): Attention {
  return {
    kind: 'stuck',
    text: wait(subject === undefined ? method : `${method} ${subject}`, connection, seconds, waitingFor),
  };
}

function wait(what: string, connection: string | undefined, seconds: number, waitingFor: string | undefined): string {
  const where = connection === undefined ? '' : ` on connection ${connection}`;
  const held = waitingFor === undefined ? 'and does not say what it waits for' : `and waits for ${waitingFor}`;
  return `${what}${where} has been running for ${formatAge(seconds)} ${held}.`;
}

function connectionTrouble({ name, driver, state, problem, capacity }: ConnectionTold): readonly Attention[] {
  const who = name === '' ? 'The storage' : `Connection ${name}`;
  const broken = driver === undefined ? 'its calls fail until that is repaired' : 'the last good version stays in use';
  return [
    ...(state === 'broken' ? [{ kind: 'broken-connection', text: `${who}: ${problem}; ${broken}` } as const] : []),
    ...(capacity.state === 'failed'
      ? [{ kind: 'no-answer', text: `${who} cannot tell its free space: ${capacity.problem}` } as const]
      : []),
  ];
}
