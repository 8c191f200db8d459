/** The status page: calls, work that goes on, and what failed. */
import { formatAge, formatClock } from './ages.ts';
import { type Html, html } from './html.ts';
import type { CallTold, FailureTold, OperationTold, Status } from './status.ts';
import { stuckSeconds } from './status-work.ts';

export function callsSection({ calls }: Status): Html {
  return section(
    'calls',
    'Calls in flight',
    'oldest first',
    calls.length === 0
      ? empty('No call is being answered.')
      : table(['Call', 'About', 'Connection', 'For', 'Waits for'], calls.map(callRow)),
  );
}

function callRow(call: CallTold): Html {
  return html`<tr${stuckClass(call.stuck)}><th scope="row" class="method">${call.method}${request(call)}</th>
<td class="wide">${about(call)}</td>
<td data-label="on">${call.connection && html`<code>${call.connection}</code>`}</td>
<td class="age${call.seconds > stuckSeconds ? ' long' : ''}" data-label="for"><time datetime="${call.startedAt}" title="since ${formatClock(call.startedAt)}">${formatAge(call.seconds)}</time></td>
<td data-label="waits for">${whatHolds(call)}</td></tr>`;
}

function whatHolds({ waitingFor, operation }: CallTold): Html {
  const joined =
    operation?.joined &&
    html`<small>joined ${operation.title}, which an earlier call began ${formatAge(operation.seconds)} ago</small>`;
  return html`${waitingFor ?? html`<span class="dim">working</span>`}${joined || undefined}`;
}

/** Only what no call tells already. */
export function operationsSection({ operations }: Status): Html | undefined {
  const alone = operations.filter(({ callers }) => callers === 0);
  if (alone.length === 0) return undefined;
  return section(
    'operations',
    'Work without a caller',
    'its callers gave up; the same call again finds the result',
    table(['Work', 'Connection', 'For', 'Waits for'], alone.map(operationRow)),
  );
}

function operationRow({ title, requestId, connection, startedAt, seconds, waitingFor, stuck }: OperationTold): Html {
  return html`<tr${stuckClass(stuck)}><th scope="row">${title}<small>begun by ${requestId}</small></th>
<td data-label="on">${connection && html`<code>${connection}</code>`}</td>
<td class="age${stuck ? ' long' : ''}" data-label="for"><time datetime="${startedAt}" title="since ${formatClock(startedAt)}">${formatAge(seconds)}</time></td>
<td data-label="waits for">${waitingFor ?? html`<span class="dim">working</span>`}</td></tr>`;
}

export function failuresSection({ failures, time }: Status): Html {
  const now = Date.parse(time);
  const note = failures.length >= 100 ? 'the last 100, newest first' : 'since the start, newest first';
  return section(
    'failures',
    'Calls that failed',
    note,
    failures.length === 0
      ? empty('None.')
      : table(
          ['When', 'Call', 'About', 'What happened'],
          grouped(failures).map((group) => failureRow(group, now)),
        ),
  );
}

interface FailureGroup {
  readonly newest: FailureTold;
  readonly oldest: FailureTold;
  readonly times: number;
}

/** Orchestrators repeat what failed: the same failure is told once, with how often it happened. Messages may differ in their numbers, such as ages. */
function grouped(failures: readonly FailureTold[]): readonly FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const failed of failures) {
    const { method, subject, details, code, message, connection } = failed;
    const key = JSON.stringify([method, subject, details, code, message.replace(/\d+/g, '0'), connection]);
    const group = groups.get(key);
    groups.set(key, { newest: group?.newest ?? failed, oldest: failed, times: (group?.times ?? 0) + 1 });
  }
  return [...groups.values()];
}

function failureRow({ newest, oldest, times }: FailureGroup, now: number): Html {
  const ago = (at: string) => `${formatAge((now - Date.parse(at)) / 1000)} ago`;
  const repeated = times > 1 ? html`<small>${times} times, first ${ago(oldest.at)}</small>` : undefined;
  return html`<tr><td class="age"><time datetime="${newest.at}" title="${formatClock(newest.at)}">${ago(newest.at)}</time>${repeated}</td>
<th scope="row" class="method">${newest.method}${request(newest)}</th>
<td class="wide">${about(newest)}${newest.connection && html`<small>on ${newest.connection}</small>`}</td>
<td><span class="state ${isFault(newest.code) ? 'bad' : 'warn'}">${newest.code}</span> ${newest.message}${
    newest.seconds >= 1 && html`<small>after ${formatAge(newest.seconds)}</small>`
  }</td></tr>`;
}

/** By which its log lines are found. */
const request = ({ requestId }: { readonly requestId: string }) =>
  html`<small title="request id, as in the log">${requestId}</small>`;

const isFault = (code: string) => code === 'INTERNAL' || code === 'UNKNOWN' || code === 'DATA_LOSS';

/** What else a call names, in words. */
const detailWords: Readonly<Record<string, string>> = {
  sourceVolumeId: 'of',
  nodeId: 'for node',
  stagingTargetPath: 'staged at',
  targetPath: 'at',
  volumePath: 'at',
};

function about({ subject, details }: Pick<CallTold, 'subject' | 'details'>): Html {
  const rest = Object.entries(details).map(
    ([name, value]) => html`<small title="${name}">${detailWords[name] ?? name} <code>${value}</code></small>`,
  );
  return html`${subject && html`<code>${subject}</code>`}${rest}`;
}

export function section(id: string, title: string, note: string, content: Html): Html {
  return html`<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title} ${note && html`<small>${note}</small>`}</h2>
<div class="card scroll">${content}</div>
</section>`;
}

export function table(head: readonly string[], rows: readonly Html[]): Html {
  return html`<table><thead><tr>${head.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead><tbody>
${rows}</tbody></table>`;
}

export function empty(text: string): Html {
  return html`<p class="empty">${text}</p>`;
}

const stuckClass = (stuck: boolean) => (stuck ? html` class="stuck"` : undefined);
