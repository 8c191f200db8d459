/** The status page in a real browser, over a server in which something is stuck. */
import assert from 'node:assert/strict';
import { access, mkdtemp, readFile, rm, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import { hangingCopies, type Site, startSite } from './http-support.ts';

const executablePath = '/usr/bin/chromium';

const isThere = await access(executablePath).then(
  () => true,
  () => false,
);
// Continuous integration has the browser: there, its absence is a failure that speaks for itself.
const skip = !isThere && process.env.CI !== 'true' && `NOT TESTED: ${executablePath} is missing (Debian: chromium)`;

interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong in the page, and what it asked of anybody but the server. */
  readonly troubles: string[];
}

async function openTab(
  t: TestContext,
  { url }: Pick<Site, 'url'>,
  options: { javaScriptEnabled?: boolean } = {},
): Promise<Tab> {
  const profile = await mkdtemp(join(tmpdir(), 'browser-'));
  const flags = '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking';
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: [...flags.split(' '), '--disable-component-update', '--disable-sync'],
    ...options,
  });
  t.after(async () => {
    await context.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const [page = await context.newPage()] = context.pages();
  const troubles: string[] = [];
  page.on('console', (message) => troubles.push(message.text()));
  page.on('pageerror', ({ message }) => troubles.push(message));
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) troubles.push(request.url());
  });
  await page.goto(`${url}/`);
  return { page, context, troubles };
}

/** Text of the row of a section whose header cell has this text. */
const row = (page: Page, section: string, text: string) =>
  page.locator(`#${section} tr`, { has: page.locator('th', { hasText: text }) }).first();

const textOf = async (element: Locator) => (await element.textContent()) ?? '';

/** Of a browser's global object, what is used here. */
interface Globals {
  getComputedStyle(element: unknown): { readonly backgroundColor: string };
}

const backgroundOf = (element: Locator) =>
  element.evaluate((one) => (globalThis as unknown as Globals).getComputedStyle(one).backgroundColor);

const stuckSnapshot = async (t: TestContext, site: Site) => {
  assert.equal((await site.ctl('create', 'data', '--connection', 'nas', '--size', '1Mi')).code, 0);
  const reached = await hangingCopies(site);
  const snapshot = site.ctl('snapshot', 'v:nas/data', 'before-upgrade');
  await reached();
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 133_000 });
  return async () => {
    await site.server.stop(0);
    await snapshot;
  };
};

const rules = `  nodeTopology:
    type: custom
    customRules:
    - { keySuffix: rack, matchRegexp: 'worker-(\\d+)', resultTemplate: 'rack-\${match:1}' }
`;

test('why a volume is stuck is told first, then everything else', { skip }, async (t) => {
  const site = await startSite(t, { connections: { nas: undefined, bad: 'driver: local-hostpat\n' }, proxy: rules });
  const end = await stuckSnapshot(t, site);
  await site.ctl('delete', 'v:nas/data');
  const { page, troubles } = await openTab(t, site);

  const first = page.locator('.attention li').first();
  assert.match(
    await textOf(first),
    /^CreateSnapshot before-upgrade on nas: 2 min \d+ s now, waiting for copy of volume data$/,
  );
  assert.match(await page.title(), /^\(2\) worker-3 · Switchboard$/);

  const call = row(page, 'calls', 'CreateSnapshot');
  assert.match(
    await textOf(call),
    /before-upgrade[\s\S]*v:nas\/data[\s\S]*nas[\s\S]*2 min \d+ s[\s\S]*copy of volume data/,
  );
  assert.equal(await call.getAttribute('class'), 'stuck');
  const [ground, usual] = [call, row(page, 'connections', 'nas')].map((one) => backgroundOf(one.locator('th')));
  assert.notEqual(await ground, await usual, 'it stands out');

  assert.match(
    await textOf(row(page, 'connections', 'nas')),
    /ok[\s\S]*local-hostpath[\s\S]*[KMGT]iB[\s\S]*1 in progress/,
  );
  assert.match(
    await textOf(row(page, 'connections', 'bad')),
    /broken[\s\S]*bad\.yaml:1:9: there is no driver "local-hostpat"/,
  );
  assert.match(
    await textOf(row(page, 'failures', 'DeleteVolume')),
    /v:nas\/data[\s\S]*ABORTED[\s\S]*held by CreateSnapshot/,
  );
  const node = await textOf(page.locator('#node'));
  assert.match(node, /n=worker-3[\s\S]*org\.democratic-csi\.topology\/rack=rack-3 by rule 1 \(rack from nodeName\)/);
  assert.deepEqual(troubles, []);
  await end();
});

test('hostile names run no script and look like what they are', { skip }, async (t) => {
  const site = await startSite(t, { nodeName: `<img src=x onerror="alert('node')">` });
  const name = `"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e`;
  const made = await site.ctl('create', name, '--connection', 'none', '--size', '1Mi');
  assert.equal(made.code, 1);
  await site.ctl('publish', 'v:none/x', `/tmp/<svg onload=alert(3)>`);
  await site.ctl('delete', `v:local/</td></table></main><script>alert(4)</script>`);
  const { page, troubles } = await openTab(t, site);
  const shown = await textOf(page.locator('#failures'));
  assert.ok(shown.includes(`"><script>alert(1)</script><img src=x onerror=alert(2)>\\u202e`), shown);
  assert.equal(await page.locator('img, #failures script, #failures svg').count(), 0);
  assert.equal(await page.locator('main').count(), 1);
  assert.deepEqual(troubles, []);
  // Even if a name got through, the policy of the page would stop it.
  await page.evaluate(`
    document.body.insertAdjacentHTML('beforeend', '<img src="data:," onerror="document.title = \\'run\\'">');
    const script = document.createElement('script');
    script.textContent = 'document.title = "run"';
    document.body.append(script);
  `);
  assert.notEqual(await page.title(), 'run');
  assert.ok(troubles.some((text) => /Content Security Policy/.test(text)));
});

test('the page keeps itself up to date, says when nobody answers, and goes on when somebody does', {
  skip,
}, async (t) => {
  const site = await startSite(t);
  const { page, troubles, context } = await openTab(t, site);
  await page.clock.install();
  await page.reload();
  assert.equal(await row(page, 'failures', 'DeleteVolume').count(), 0);
  await site.ctl('delete', 'v:none/x');
  await page.clock.runFor(6000);
  await row(page, 'failures', 'DeleteVolume').waitFor();
  assert.equal(await page.locator('.offline').isVisible(), false);
  assert.deepEqual(troubles, []);

  // The selection of somebody who copies a text stays.
  await page.evaluate('getSelection().selectAllChildren(document.querySelector("#failures"))');
  await site.ctl('publish', 'v:none/x', '/tmp/nothing');
  await page.clock.runFor(12_000);
  assert.equal(await row(page, 'failures', 'ControllerGetVolume').count(), 0);
  await page.evaluate('getSelection().removeAllRanges()');
  await page.clock.runFor(6000);
  await row(page, 'failures', 'ControllerGetVolume').waitFor();

  await context.setOffline(true);
  await page.clock.runFor(6000);
  await page.locator('.offline').waitFor();
  assert.match(await page.title(), /no answer/);
  assert.ok(await row(page, 'failures', 'ControllerGetVolume').isVisible(), 'what was known stays');
  await context.setOffline(false);
  await page.clock.runFor(6000);
  await page.locator('.offline').waitFor({ state: 'hidden' });
  assert.match(await page.title(), /worker-3/);
});

test('without scripts the page is whole, and the browser loads it anew', { skip }, async (t) => {
  const site = await startSite(t);
  await site.ctl('delete', 'v:none/x');
  const { page } = await openTab(t, site, { javaScriptEnabled: false });
  assert.match(await page.content(), /<meta http-equiv="refresh" content="5">/);
  assert.ok(await row(page, 'failures', 'DeleteVolume').isVisible());
});

test('light and dark, narrow and wide, nothing sticks out and every text can be read', { skip }, async (t) => {
  const site = await startSite(t, { connections: { nas: undefined, bad: 'driver: local-hostpat\n' }, proxy: rules });
  const end = await stuckSnapshot(t, site);
  await site.ctl('delete', `v:${'x'.repeat(60)}/${'long-name-'.repeat(9)}`);
  const { page } = await openTab(t, site);
  const poorContrasts = await readFile(join(import.meta.dirname, 'poor-contrasts.js'), 'utf8');
  const pictures: string[] = [];
  t.after(async () => {
    if (!process.env.SWITCHBOARD_KEEP_SCREENSHOTS) await Promise.all(pictures.map((path) => unlink(path)));
  });
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [360, 820, 1000, 1600]) {
      await page.setViewportSize({ width, height: 900 });
      const what = `${colorScheme} ${width}`;
      const path = join(tmpdir(), `switchboard-status-${what.replace(' ', '-')}.png`);
      await page.screenshot({ path, fullPage: true });
      pictures.push(path);
      const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      assert.ok(overhang <= 0, `${what}: ${overhang} pixels stick out`);
      assert.deepEqual(await page.evaluate(poorContrasts), [], what);
    }
  }
  await end();
});
