/** The status page: the whole document. */
import { createHash } from 'node:crypto';
import { formatAge, formatClock } from './ages.ts';
import { type Html, html, trusted } from './html.ts';
import { connectionsSection, nodeSection, pluginSection } from './page-places.ts';
import { callsSection, failuresSection, operationsSection } from './page-work.ts';
import { refreshScript, refreshSeconds } from './refresh-script.ts';
import type { Attention, Status } from './status.ts';
import { longestWait, stuckSeconds } from './status-work.ts';
import { style } from './style.ts';

/** Nothing but what is written here may run or be loaded, whatever a name contains. */
export const pagePolicy = [
  `default-src 'none'`,
  `style-src '${hashOf(style)}'`,
  `script-src '${hashOf(refreshScript)}'`,
  `connect-src 'self'`,
  'img-src data:',
  `base-uri 'none'`,
  `form-action 'none'`,
  `frame-ancestors 'none'`,
].join('; ');

export function statusPage(status: Status): string {
  const { plugin, attention } = status;
  const isUrgent = attention.some(isPressing);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<noscript><meta http-equiv="refresh" content="${refreshSeconds}"></noscript>
<link rel="icon" href="${icon(isUrgent ? '#d6362e' : '#2f6fdd')}">
<title>${attention.length > 0 ? `(${attention.length}) ` : ''}${plugin.nodeName} &middot; Switchboard</title>
<style>${trusted(style)}</style>
</head>
<body>
<p class="offline bad" role="status" hidden>Nobody answers any more: this is how it was. The page goes on trying.</p>
<main>
${header(status)}
${figures(status)}
${attentionBox(attention)}
${callsSection(status)}
${operationsSection(status)}
${connectionsSection(status)}
${failuresSection(status)}
<div class="pair">
${nodeSection(status)}
${pluginSection(status)}
</div>
<footer>As of <time datetime="${status.time}">${formatClock(status.time)}</time>, again every ${refreshSeconds} s. Also here: <a href="/status.json">status.json</a>,
<a href="/metrics">metrics</a>, <a href="/metrics/capacity">metrics/capacity</a>, <a href="/readyz">readyz</a>,
<a href="/healthz">healthz</a>. Nothing can be changed from here.</footer>
</main>
<script>${trusted(refreshScript)}</script>
</body>
</html>
`.markup;
}

function header({ plugin, ready }: Status): Html {
  return html`<header class="top">
<h1>${trusted(logo)}Switchboard <span class="state ${ready ? 'good' : 'bad'}">${ready ? 'ready' : 'not ready'}</span></h1>
<p><code>${plugin.name}</code> on <code>${plugin.nodeName}</code>, up ${formatAge(plugin.uptimeSeconds)}</p>
</header>`;
}

function figures(status: Status): Html {
  const { connections, calls, failures } = status;
  const broken = connections.filter(({ state }) => state === 'broken').length;
  const longest = longestWait(status);
  const figure = (name: string, value: string | number, state: '' | 'bad' | 'warn') =>
    html`<div class="card"><dt>${name}</dt><dd class="${state}">${value}</dd></div>`;
  return html`<dl class="figures">
${figure(`${counted(calls.length, 'call')} in flight`, calls.length, '')}
${figure('longest wait', longest === 0 ? '–' : formatAge(longest), longest > stuckSeconds ? 'bad' : '')}
${figure(`${counted(connections.length, 'connection')}${broken > 0 ? `, ${broken} broken` : ''}`, connections.length, broken > 0 ? 'warn' : '')}
${figure('calls that failed lately', failures.length >= 100 ? '100+' : failures.length, '')}
</dl>`;
}

const counted = (count: number, thing: string) => (count === 1 ? thing : `${thing}s`);

const isPressing = ({ kind }: Attention) => kind === 'stuck' || kind === 'not-ready' || kind === 'broken-connection';

function attentionBox(attention: readonly Attention[]): Html {
  if (attention.length === 0) {
    return html`<div class="card attention calm"><strong>Nothing is stuck.</strong>
<span class="dim">No call has been waiting for more than ${stuckSeconds} s, and every connection is in order.</span></div>`;
  }
  const title = attention.length === 1 ? 'Look at this first' : 'Look at these first';
  return html`<div class="card attention ${attention.some(isPressing) ? '' : 'minor'}"><strong>${title}</strong><ul>
${attention.map(({ about, text }) => html`<li><b>${about}</b>: ${text}</li>`)}
</ul></div>`;
}

/** Jacks of a switchboard, two of them connected. */
const logo = `<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round">
<rect x="1.5" y="1.5" width="21" height="21" rx="5"/><circle cx="7" cy="8" r="1.6"/><circle cx="17" cy="8" r="1.6"/>
<path d="M7 11.5c0 7 10 7 10 0"/></svg>`;

function icon(colour: string): string {
  const svg = logo
    .replaceAll('\n', '')
    .replace('<svg', '<svg xmlns="http://www.w3.org/2000/svg"')
    .replace('currentColor', colour);
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
