/** The page is made of names that anybody may choose. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { pagePolicy, statusPage } from '../../src/frontends/http/page.ts';
import type { FailureTold, Status } from '../../src/frontends/http/status.ts';

const at = '2025-11-21T12:00:00.000Z';

/** A status in which every text is this one. */
function statusOf(text: string): Status {
  const details = { targetPath: text, [text]: text };
  const call = { method: text, subject: text, details, requestId: text, connection: text, driver: text, seconds: 31 };
  const operation = { title: text, seconds: 40, joined: true };
  return {
    time: at,
    ready: false,
    notReadyBecause: text,
    attention: [{ kind: 'stuck', about: text, text }],
    plugin: {
      name: text,
      driver: text,
      nodeName: text,
      modes: [text],
      version: text,
      commit: text,
      runtime: text,
      pid: 1,
      startedAt: at,
      uptimeSeconds: 5,
      memoryBytes: 1,
      addresses: [text],
    },
    node: {
      state: 'known',
      nodeId: text,
      topology: [{ key: text, value: text, rule: text }],
      skipped: [{ rule: text, why: text, warning: true }],
      problem: text,
    },
    filesProblem: text,
    connections: [
      {
        name: text,
        state: 'broken',
        driver: text,
        file: text,
        problem: text,
        loadedAt: at,
        retiring: 1,
        operations: 1,
        capacity: { state: 'failed', problem: text, at },
      },
    ],
    calls: [{ ...call, startedAt: at, waitingFor: text, operation, stuck: true }],
    operations: [
      {
        title: text,
        requestId: text,
        connection: text,
        startedAt: at,
        seconds: 40,
        waitingFor: text,
        callers: 0,
        stuck: true,
      },
    ],
    failures: [{ ...call, at, code: text, message: text }],
  };
}

/** The tags of a document, without its style and script. */
function tagsOf(page: string): string[] {
  const shown = page.replace(/<style>.*?<\/style>/s, '').replace(/<script>.*?<\/script>/s, '');
  return [...shown.matchAll(/<\/?[a-z!][^>]*>/gi)].map(([tag]) => tag.replace(/"[^"]*"/g, '""'));
}

test('whatever names there are, the page has the same elements and attributes', () => {
  const usual = tagsOf(statusPage(statusOf('x')));
  const hostile = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "' onload='alert(1)", '</main><!--'];
  const texts = fc.oneof(fc.constantFrom(...hostile), fc.string({ minLength: 1, unit: 'binary' }));
  fc.assert(
    fc.property(texts, (text) => assert.deepEqual(tagsOf(statusPage(statusOf(text))), usual)),
    { numRuns: 60 },
  );
});

test('the policy lets exactly the style and the script of the page in', () => {
  const page = statusPage(statusOf('x'));
  for (const [name, directive] of [
    ['style', 'style-src'],
    ['script', 'script-src'],
  ] as const) {
    const [, content = ''] = new RegExp(`<${name}>(.*?)</${name}>`, 's').exec(page) ?? [];
    const hash = createHash('sha256').update(content).digest('base64');
    assert.ok(pagePolicy.includes(`${directive} 'sha256-${hash}'`), name);
  }
  assert.doesNotMatch(page, / style="| on\w+="|(?:src|href)="(?!data:|\/)/);
  assert.match(pagePolicy, /default-src 'none'/);
});

test('a failure that is repeated takes one line, with how often it happened', () => {
  const failed: FailureTold = {
    method: 'DeleteVolume',
    subject: 'v:nas/data',
    details: {},
    requestId: 'r',
    at: '2025-11-21T11:59:00.000Z',
    seconds: 0.1,
    code: 'ABORTED',
    message: 'volume data is held by CreateSnapshot s (42 s, in `zfs send`); try again later',
  };
  const status = statusOf('x');
  const page = statusPage({
    ...status,
    failures: [
      failed,
      { ...failed, at: '2025-11-21T11:58:00.000Z', message: failed.message.replace('42', '7') },
      { ...failed, subject: 'v:nas/other' },
      { ...failed, at: '2025-11-21T11:50:00.000Z', message: failed.message.replace('42', '1') },
    ],
  });
  assert.equal(page.match(/DeleteVolume/g)?.length, 2);
  assert.match(page, /3 times, first 10 min ago/);
});

test('with nothing to look at, the page says so', () => {
  const status = { ...statusOf('x'), attention: [], calls: [], operations: [], failures: [], connections: [] };
  const page = statusPage({ ...status, ready: true, filesProblem: undefined });
  assert.match(page, /Nothing is stuck/);
  assert.match(page, /No call is being answered/);
  assert.doesNotMatch(page, /Work without a caller/);
});
