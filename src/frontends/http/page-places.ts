/** The status page: connections, this node, and the plugin itself. */
import { dirname } from 'node:path';
import { formatSize } from '../../core/sizes.ts';
import { formatAge, formatClock } from './ages.ts';
import { type Html, html } from './html.ts';
import { empty, section, table } from './page-work.ts';
import type { Status } from './status.ts';
import type { ConnectionTold } from './status-connections.ts';

export function connectionsSection(status: Status): Html {
  const { connections, filesProblem } = status;
  return section(
    'connections',
    'Connections',
    filesProblem ? `as they were last seen: ${filesProblem}` : folderOf(connections),
    connections.length === 0
      ? empty('There are no connections yet: each file in the folder of connections is one.')
      : table(
          ['Connection', 'State', 'Driver', 'Free space', 'Work'],
          connections.map((one) => connectionRow(one, Date.parse(status.time))),
        ),
  );
}

/** All files are in one folder. */
function folderOf([first]: readonly ConnectionTold[]): string {
  return first?.file === undefined ? '' : `the files in ${dirname(first.file)}`;
}

const states = { ok: 'good', broken: 'bad', idle: '', absent: '' } as const;

function connectionRow(connection: ConnectionTold, now: number): Html {
  const { name, state, driver, file, problem, loadedAt, retiring, operations } = connection;
  const kept = driver === undefined ? 'Its calls fail until that is repaired.' : 'The last good version stays in use.';
  const loaded = loadedAt && `loaded ${formatAge((now - Date.parse(loadedAt)) / 1000)} ago`;
  const work = [
    ...(operations > 0 ? [`${operations} in progress`] : []),
    ...(retiring > 0 ? [`${retiring} on an earlier file`] : []),
  ];
  return html`<tr><th scope="row" title="${file ?? ''}">${name || 'the only one'}</th>
<td><span class="state ${states[state]}">${state}</span>${
    problem && html`<small class="wrong">${problem}</small><small>${kept}</small>`
  }</td>
<td class="wide">${driver && html`<code>${driver}</code>`}${loaded && html`<small>${loaded}</small>`}</td>
<td class="number" data-label="free">${space(connection)}</td>
<td data-label="work">${work.join(', ')}</td></tr>`;
}

function space({ capacity }: ConnectionTold): Html {
  switch (capacity.state) {
    case 'asking':
      return html`<span class="dim">asking&hellip;</span>`;
    case 'unknown':
      return html`<span class="dim">&ndash;</span>`;
    case 'failed':
      return html`<span class="state warn">no answer</span>`;
    case 'known': {
      const { availableBytes, maximumVolumeBytes } = capacity;
      const isSmaller = maximumVolumeBytes !== undefined && maximumVolumeBytes < availableBytes;
      return html`${formatSize(availableBytes)}${isSmaller && html`<small>${formatSize(maximumVolumeBytes)} a volume</small>`}`;
    }
  }
}

export function nodeSection({ node }: Status): Html | undefined {
  if (!node) return undefined;
  const segments = node.topology.map(
    ({ key, value, rule }) =>
      html`<dd><code>${key}=${value}</code>${rule && html` <span class="dim">by ${rule}</span>`}</dd>`,
  );
  const skipped = node.skipped.map(
    ({ rule, why, warning }) =>
      html`<dd>${warning ? html`<span class="state warn">look</span> ` : undefined}${rule}: ${why}</dd>`,
  );
  return section(
    'node',
    'This node',
    'as it tells the orchestrator',
    html`<dl class="facts"><dt>Node id</dt><dd>${
      node.nodeId === undefined ? unknown(node.state === 'asking') : html`<code>${node.nodeId}</code>`
    }</dd>
<dt>Topology</dt>${segments.length > 0 ? segments : html`<dd>${unknown(node.state === 'asking')}</dd>`}
${skipped.length > 0 ? html`<dt>Other rules</dt>${skipped}` : undefined}
${node.problem && html`<dt>Problem</dt><dd><span class="state bad">cannot be told</span> ${node.problem}</dd>`}</dl>`,
  );
}

const unknown = (isAsking: boolean) => html`<span class="dim">${isAsking ? 'asking…' : 'none'}</span>`;

export function pluginSection({ plugin }: Status): Html {
  const addresses = plugin.addresses.map((address) => html`<dd><code>${address}</code></dd>`);
  return section(
    'plugin',
    'This process',
    '',
    html`<dl class="facts"><dt>Version</dt><dd>${plugin.version} <span class="dim">(${plugin.commit}), ${plugin.runtime}</span></dd>
<dt>Driver</dt><dd><code>${plugin.driver}</code> <span class="dim">as ${plugin.modes.join(' and ')}</span></dd>
<dt>Listens on</dt>${addresses}
<dt>Started</dt>
<dd><time datetime="${plugin.startedAt}">${formatClock(plugin.startedAt)}</time> <span class="dim">process ${plugin.pid}</span></dd>
<dt>Memory</dt><dd>${formatSize(plugin.memoryBytes)}</dd></dl>`,
  );
}
