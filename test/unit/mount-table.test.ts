import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isWithin, type Mount, parseMountTable, readMountTable } from '../../src/node/mount-table.ts';

/** As the kernel writes it (fs/proc_namespace.c). */
function render(mount: Mount, optional: readonly string[] = []): string {
  const fields = [
    mount.id,
    mount.parentId,
    mount.device,
    escaped(mount.root),
    escaped(mount.mountPoint),
    mount.options.join(','),
    ...optional,
    '-',
    mount.fsType,
    escaped(mount.source),
    mount.superOptions.join(','),
  ];
  return `${fields.join(' ')}\n`;
}

function escaped(text: string): string {
  return text.replace(/[ \t\n\\#]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

const mount = (id: number, parentId: number, mountPoint: string, more: Partial<Mount> = {}): Mount => ({
  id,
  parentId,
  device: '8:1',
  root: '/',
  mountPoint,
  options: ['rw', 'relatime'],
  fsType: 'ext4',
  source: '/dev/sda1',
  superOptions: ['rw'],
  ...more,
});
const table = (...mounts: Mount[]) => parseMountTable(mounts.map((one) => render(one)).join(''));

test('the fields of a line', () => {
  const line = '36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue\n';
  assert.deepEqual(parseMountTable(line).mounts, [
    {
      id: 36,
      parentId: 35,
      device: '98:0',
      root: '/mnt1',
      mountPoint: '/mnt2',
      peerGroup: undefined,
      master: 1,
      options: ['rw', 'noatime'],
      fsType: 'ext3',
      source: '/dev/root',
      superOptions: ['rw', 'errors=continue'],
    },
  ]);
});

test('a mount with an empty source', () => {
  const [found] = parseMountTable('1 0 0:1 / /x rw -  tmpfs  rw\n1 0 0:1 / /y rw - tmpfs  rw,size=1k').mounts;
  assert.equal(found?.mountPoint, '/y');
  assert.equal(found?.source, '');
  assert.deepEqual(found?.superOptions, ['rw', 'size=1k']);
});

test('escapes: space, tab, newline, backslash', () => {
  const [found] = parseMountTable('1 0 0:1 /a\\040b /c\\011d\\012e\\134040 rw - tmpfs t\\043 rw').mounts;
  assert.equal(found?.root, '/a b');
  assert.equal(found?.mountPoint, '/c\td\ne\\040');
  assert.equal(found?.source, 't#');
});

test('the newest mount at a path is the one that is seen, and the stack below it is known', () => {
  const mounts = table(mount(1, 0, '/'), mount(2, 1, '/a', { source: 'old' }), mount(3, 2, '/a', { source: 'new' }));
  assert.equal(mounts.at('/a')?.source, 'new');
  assert.deepEqual(
    mounts.stackAt('/a').map((one) => one.id),
    [3, 2],
  );
  assert.equal(mounts.at('/a/b'), undefined);
  assert.deepEqual(mounts.stackAt('/b'), []);
});

test('a mount hidden by a later mount over its parent directory is not seen', () => {
  const mounts = table(mount(1, 0, '/'), mount(2, 1, '/a/b'), mount(3, 1, '/a'));
  assert.equal(mounts.at('/a/b'), undefined);
  assert.equal(mounts.covering('/a/b/c')?.id, 3);
  const again = table(mount(1, 0, '/'), mount(2, 1, '/a/b'), mount(3, 1, '/a'), mount(4, 3, '/a/b'));
  assert.equal(again.at('/a/b')?.id, 4);
});

test('the mount that covers a path is not fooled by names with a common beginning', () => {
  const mounts = table(mount(1, 0, '/'), mount(2, 1, '/data'), mount(3, 2, '/data/v'));
  assert.equal(mounts.covering('/database/x')?.id, 1);
  assert.equal(mounts.covering('/data/vx')?.id, 2);
  assert.equal(mounts.covering('/data/v/x')?.id, 3);
  assert.equal(mounts.covering('/data')?.id, 2);
});

test('a table without the root, as in a chroot, still finds mounts', () => {
  const mounts = table(mount(7, 5, '/data'), mount(8, 7, '/data/v'));
  assert.equal(mounts.covering('/data/v/x')?.id, 8);
  assert.equal(mounts.covering('/else'), undefined);
});

test('mounts that are their own parents do not hang a lookup', () => {
  const mounts = table(mount(1, 1, '/'), mount(2, 3, '/a'), mount(3, 2, '/a'), mount(4, 1, '/a'));
  assert.equal(mounts.covering('/a/b')?.id, 4);
  assert.deepEqual(
    mounts.stackAt('/').map((one) => one.id),
    [1],
  );
});

test('the table of this process has its root', async () => {
  const mounts = await readMountTable();
  assert.equal(mounts.covering('/')?.mountPoint, '/');
  assert.equal(mounts.at('/proc')?.fsType, 'proc');
});

const hostileName = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 12 })
  .map((text) => text.replace(/[\0/]/g, '_').replace(/[\ud800-\udfff]/g, '_'));
const hostilePath = fc.array(hostileName, { maxLength: 4 }).map((names) => `/${names.join('/')}`);
const word = fc.stringMatching(/^[a-z][a-z0-9=_]{0,9}$/);
const anyMount = fc.record({
  id: fc.nat(),
  parentId: fc.nat(),
  device: fc.tuple(fc.nat(4095), fc.nat(1048575)).map(([major, minor]) => `${major}:${minor}`),
  root: hostilePath,
  mountPoint: hostilePath,
  options: fc.array(word, { minLength: 1, maxLength: 4 }),
  fsType: fc.constantFrom('ext4', 'nfs4', 'fuse.sshfs', 'tmpfs'),
  source: fc.oneof(hostilePath, fc.constantFrom('', 'nas1:/tank/a b', '//server/share', 'tmpfs')),
  superOptions: fc.array(word, { minLength: 1, maxLength: 4 }),
});
const optionalFields = fc.array(fc.constantFrom('shared:1', 'master:2', 'propagate_from:3', 'unbindable'), {
  maxLength: 3,
});

test('what the kernel writes is read back, whatever the paths are', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyMount, optionalFields), { maxLength: 8 }), (lines) => {
      const text = lines.map(([one, optional]) => render(one, optional)).join('');
      assert.deepEqual(
        parseMountTable(text).mounts,
        lines.map(([one, optional]) => ({
          ...one,
          peerGroup: optional.includes('shared:1') ? 1 : undefined,
          master: optional.includes('master:2') ? 2 : undefined,
        })),
      );
    }),
    { numRuns: 300 },
  );
});

test('no text makes parsing or a lookup throw or hang', () => {
  const piece = fc.constantFrom(
    '1',
    '0',
    '0:1',
    '/',
    '-',
    ' ',
    '\n',
    '\\040',
    '\\',
    ' - ',
    'rw',
    '/a',
    ' 1 1 0:1 / / rw - t s rw\n',
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 60 }).map((all) => all.join('')),
  );
  fc.assert(
    fc.property(text, hostilePath, (content, path) => {
      const parsed = parseMountTable(content);
      parsed.at(path);
      parsed.covering('/');
    }),
    { numRuns: 300 },
  );
});

test('any loop of parents ends', () => {
  const looped = fc.record({ id: fc.nat(4), parentId: fc.nat(4), path: fc.constantFrom('/', '/a', '/a/b') });
  fc.assert(
    fc.property(fc.array(looped, { maxLength: 8 }), (mounts) => {
      const parsed = table(...mounts.map((one) => mount(one.id, one.parentId, one.path)));
      for (const path of ['/', '/a', '/a/b', '/c']) parsed.stackAt(path);
    }),
    { numRuns: 300 },
  );
});

test('isWithin', () => {
  assert.ok(isWithin('/a/b', '/a'));
  assert.ok(isWithin('/a', '/a'));
  assert.ok(isWithin('/a', '/'));
  assert.ok(!isWithin('/ab', '/a'));
});
