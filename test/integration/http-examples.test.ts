/** The dashboard and the alerts of examples/grafana ask for metrics that there are, with the labels they have. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { repository } from '../../scripts/lib/repository.ts';
import { startSite } from './http-support.ts';

const example = (name: string) => readFile(join(repository, 'examples/grafana', name), 'utf8');

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { query: string } }[];
  };
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}

/** Names of metrics in an expression. */
const namesIn = (expression: string) => expression.match(/\b(?:switchboard|csi|process|nodejs)_\w+/g) ?? [];

/** `name{label…` → the labels it is selected by. */
const selectionsIn = (expression: string) =>
  [...expression.matchAll(/\b(\w+)\{([^}]*)\}/g)].map(([, name = '', labels = '']) => ({
    name,
    labels: [...labels.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label),
  }));

describe('examples/grafana', () => {
  let labels: Map<string, Set<string>>;
  let dashboard: Dashboard;

  before(async () => {
    dashboard = JSON.parse(await example('switchboard.json'));
  });

  async function exposed(t: Parameters<typeof startSite>[0]): Promise<Map<string, Set<string>>> {
    const site = await startSite(t);
    await site.ctl('create', 'data', '--connection', 'local', '--size', '1Mi');
    await site.ctl('snapshot', 'v:local/data', 'one');
    const text = (await site.get('/metrics')).text + (await site.get('/metrics/capacity')).text;
    const found = new Map<string, Set<string>>();
    for (const [, name = '', inner = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
      // Prometheus adds these two.
      found.set(name, new Set(['job', 'instance', ...[...inner.matchAll(/(\w+)="/g)].map(([, label = '']) => label)]));
    }
    return found;
  }

  test('every metric exists, and has the labels it is selected by', async (t) => {
    labels = await exposed(t);
    const alerts: Rules = parse(await example('alerts.yaml'));
    const expressions = [
      ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
      ...dashboard.annotations.list.map(({ expr }) => expr),
      ...dashboard.templating.list.map(({ query }) => (typeof query === 'string' ? query : query.query)),
      ...alerts.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ];
    assert.ok(expressions.length > 25);
    for (const expression of expressions) {
      for (const name of namesIn(expression)) assert.ok(labels.has(name), `${name} in ${expression}`);
      for (const { name, labels: wanted } of selectionsIn(expression)) {
        for (const label of wanted) assert.ok(labels.get(name)?.has(label), `${label} of ${name} in ${expression}`);
      }
    }
  });

  test('every metric of ours is on the dashboard', () => {
    const text = JSON.stringify(dashboard);
    const ours = [...labels.keys()].filter((name) => /^(switchboard|csi)_/.test(name) && !name.endsWith('_sum'));
    assert.ok(ours.length > 8);
    for (const name of ours) assert.ok(text.includes(name), name);
  });

  test('panels do not overlap, have names and descriptions of their own, and use variables that there are', () => {
    const { panels, templating } = dashboard;
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    for (const [index, { gridPos: a, title }] of panels.entries()) {
      assert.ok(a.x + a.w <= 24, title);
      for (const { gridPos: b, title: other } of panels.slice(index + 1)) {
        const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
        assert.ok(apart, `${title} and ${other}`);
      }
    }
    const variables = new Set(templating.list.map(({ name }) => name));
    for (const [, name = ''] of JSON.stringify(panels).matchAll(/\$\{?(\w+)/g)) {
      assert.ok(variables.has(name) || name.startsWith('__'), name);
    }
  });
});
