import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { detachedContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { Page, PageRequest } from '../../src/core/volume.ts';
import { type Said, standInDriver, standInHost } from './zfs-stand-in.ts';

const call = detachedContext(silentLogger);
const own = 'democratic-csi:';

/** Volumes and snapshots by their names; what is read of each is what makes it one. */
function pool(names: Set<string>, cost = { lines: 0 }) {
  const told = (name: string, property: string): string => {
    const id = name.split('/').at(-1)?.split('@') ?? [];
    const values: Readonly<Record<string, string>> = {
      type: name.includes('@') ? 'snapshot' : 'filesystem',
      [`${own}managed_resource`]: 'true',
      [`${own}provision_success`]: 'true',
      [`${own}csi_share_volume_context`]: '{"node_attach_driver":"nfs"}',
      [`${own}csi_snapshot_name`]: id[1] ?? '-',
      creation: '1700000000',
      mounted: 'yes',
      sharenfs: 'rw',
    };
    return values[property] ?? '-';
  };
  return standInHost(([program, verb, ...args]): Said => {
    if (program === 'zpool') return { stdout: 'ONLINE\n' };
    if (verb === 'list') {
      const isSnapshots = args.includes('snapshot');
      const root = `${args.at(-1)}/`;
      const found = [...names].filter((name) => name.startsWith(root) && name.includes('@') === isSnapshots);
      cost.lines += found.length;
      return { stdout: found.map((name) => `${name}\n`).join('') };
    }
    if (verb === 'snapshot') {
      names.add(args.at(-1) ?? '');
      return {};
    }
    if (verb !== 'get') return { code: 1, stderr: `${verb}?` };
    const properties = args[args.indexOf('-o') + 2]?.split(',') ?? [];
    const wanted = args.filter((arg) => arg.startsWith('tank/'));
    const missing = wanted.filter((name) => !names.has(name));
    const there = wanted.filter((name) => names.has(name));
    cost.lines += there.length;
    if (args.includes('-j')) {
      const [asked = ''] = args.filter((arg) => arg.startsWith('type,'));
      const datasets = there.map((name) => {
        const read = asked.split(',').map((key) => [key, { value: told(name, key), source: { type: 'LOCAL' } }]);
        return [name, { name, type: told(name, 'type'), properties: Object.fromEntries(read) }];
      });
      const stdout = JSON.stringify({ datasets: Object.fromEntries(datasets) });
      return missing.length > 0
        ? { code: 1, stderr: `cannot open '${missing[0]}': dataset does not exist\n` }
        : { stdout };
    }
    return {
      code: missing.length > 0 ? 1 : 0,
      stdout: there.flatMap((one) => properties.map((key) => `${one}\t${key}\t${told(one, key)}\tlocal\n`)).join(''),
      stderr: missing.map((name) => `cannot open '${name}': dataset does not exist\n`).join(''),
    };
  });
}

const listing = {
  volumes: (driver: Driver) => async (page: PageRequest) => {
    const found = (await driver.volumes?.list?.(call, page)) as Page<{ volume: { id: string } }>;
    return { ...found, entries: found.entries.map(({ volume }) => volume.id) };
  },
  snapshots: (driver: Driver) => async (page: PageRequest) => {
    const found = (await driver.snapshots?.list?.(call, {}, page)) as Page<{ id: string }>;
    return { ...found, entries: found.entries.map(({ id }) => id) };
  },
};

const nameOf = { volumes: (id: string) => `tank/v/${id}`, snapshots: (id: string) => `tank/v/${id}` };
const idOf = {
  volumes: (number: number) => `pvc-${number}`,
  snapshots: (number: number) => `pvc-${number % 100}@snap-${number}`,
};

for (const kind of ['volumes', 'snapshots'] as const) {
  for (const limit of [1000, 7]) {
    test(`10,000 ${kind} in pages of ${limit}, while others come and go: each once, and no more commands than pages`, async () => {
      const throughout = Array.from({ length: 10_000 }, (_, index) => idOf[kind](index));
      const passing = Array.from({ length: 500 }, (_, index) => idOf[kind](20_000 + index * 3));
      const names = new Set([...throughout, ...passing].map(nameOf[kind]));
      const cost = { lines: 0 };
      const host = pool(names, cost);
      const driver = standInDriver(host);
      const list = listing[kind](driver);
      const seen: string[] = [];
      let pages = 0;
      for (let token: string | undefined; pages === 0 || token !== undefined; pages++) {
        const page = await list({ limit, token });
        assert.ok(page.entries.length <= limit);
        seen.push(...page.entries);
        token = page.nextToken;
        const gone = passing[pages % passing.length];
        if (gone !== undefined) names.delete(nameOf[kind](gone));
        names.add(nameOf[kind](idOf[kind](50_000 + pages)));
      }
      const constant = new Set(throughout);
      assert.deepEqual(seen.filter((id) => constant.has(id)).sort(), throughout.sort());
      assert.equal(new Set(seen).size, seen.length);
      // A page that lost some of its volumes is filled up by another command.
      assert.ok(host.commands().length <= 3 * pages + 3, `${host.commands().length} commands, ${pages} pages`);
      assert.ok(cost.lines <= 3 * names.size, `${cost.lines} names or datasets were read`);
      await driver.close();
    });
  }
}

test('a list is gone on with by another process, and by one that has been asked for another list meanwhile', async () => {
  const operations = fc.array(fc.tuple(fc.nat(30), fc.boolean()), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 9 }),
      operations,
      fc.array(fc.boolean()),
      async (limit, changes, news) => {
        const changing = new Set(changes.map(([number]) => number));
        const throughout = Array.from({ length: 31 }, (_, index) => index).filter((number) => !changing.has(number));
        const names = new Set(throughout.map((number) => nameOf.volumes(idOf.volumes(number))));
        const host = pool(names);
        let driver = standInDriver(host);
        const seen: string[] = [];
        let pages = 0;
        for (let token: string | undefined; pages === 0 || token !== undefined; pages++) {
          const page = await listing.volumes(driver)({ limit, token });
          seen.push(...page.entries);
          token = page.nextToken;
          const change = changes[pages];
          if (change?.[1]) names.add(nameOf.volumes(idOf.volumes(change[0])));
          else if (change) names.delete(nameOf.volumes(idOf.volumes(change[0])));
          if (news[pages]) driver = standInDriver(host);
          else await listing.volumes(driver)({ limit: 2 });
        }
        assert.equal(new Set(seen).size, seen.length);
        for (const number of throughout) assert.ok(seen.includes(idOf.volumes(number)), `${number} is missing`);
      },
    ),
    { numRuns: 60 },
  );
});

test('snapshots: names of all are read once, not for each; a name that another volume has is refused', async () => {
  const names = new Set(['tank/v/a', 'tank/v/b', 'tank/v/a@first', 'tank/v/b@other']);
  const host = pool(names);
  const driver = standInDriver(host);
  const create = (sourceVolumeId: string, name: string) =>
    driver.snapshots?.create(call, { sourceVolumeId, name, parameters: {} });
  const isTaken = (error: unknown) => error instanceof CallError && error.code === 'ALREADY_EXISTS';
  for (let number = 0; number < 20; number++) {
    assert.equal((await create('a', `s-${number}`))?.id, `a@s-${number}`);
  }
  const lists = host.commands().filter(([, verb]) => verb === 'list');
  // Of volumes' snapshots, and of detached ones.
  assert.equal(lists.length, 2);
  await assert.rejects(Promise.resolve(create('b', 'first')), isTaken);
  await assert.rejects(Promise.resolve(create('b', 's-7')), isTaken);
  assert.equal((await create('a', 's-7'))?.id, 'a@s-7');
  // Deleted meanwhile, by whomever.
  names.delete('tank/v/a@first');
  assert.equal((await create('b', 'first'))?.id, 'b@first');
  await driver.close();
});
