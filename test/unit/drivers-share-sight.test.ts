/** A share is not taken for another one: what is mounted at the base path of a controller, by whatever name, and what is not. */
import assert from 'node:assert/strict';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { detachedContext } from '../../src/core/call.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { localFiles } from '../../src/drivers/directory/files.ts';
import { createShareGuard } from '../../src/drivers/directory/share-guard.ts';
import { createShareSight } from '../../src/drivers/directory/share-sight.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';
import type { ShareSource } from '../../src/node/share-source.ts';
import { makeFolder, makeSite, mountOf, rootLine, sightOf } from './share-machine.ts';

const call = detachedContext(silentLogger);
const nfs: ShareSource = { family: 'nfs', host: 'nas', path: '/srv/csi' };
const smb: ShareSource = { family: 'smb', host: 'nas', path: '/csi/sub' };
const lustre: ShareSource = { family: 'lustre', host: 'mgs@tcp', path: '/scratch/csi' };

/** Type, source, mount point, root, options of the file system. */
type Line = readonly [fsType: string, source: string, place: string, root?: string, options?: string];

const tableOf = (lines: readonly Line[]) =>
  parseMountTable(
    [
      rootLine,
      ...lines.map(
        ([fsType, source, place, root = '/', options = 'rw'], index) =>
          `${index + 2} 1 0:${index + 50} ${root} ${place} rw - ${fsType} ${source} ${options}`,
      ),
    ].join('\n'),
  );

for (const [share, line, is, name] of [
  [nfs, ['nfs4', 'nas:/srv/csi', '/mnt/csi'], 'share', 'as it is'],
  [nfs, ['nfs', 'NAS:/srv//csi/', '/mnt/csi'], 'share', 'spelled otherwise'],
  [nfs, ['nfs4', 'nas:/srv', '/mnt'], 'share', 'in a mount of the folder above'],
  [nfs, ['nfs4', 'nas:/boot/root', '/'], 'other', 'all of this machine is on that server, elsewhere'],
  [nfs, ['nfs4', 'nas:/srv/other', '/mnt/csi'], 'other', 'another folder of the server'],
  [nfs, ['nfs4', 'nas2:/srv/csi', '/mnt/csi'], 'alias', 'the same folder of a server by another name'],
  [nfs, ['nfs4', 'nas2:/csi', '/mnt/csi'], 'other', 'the end of the path, on a server by another name'],
  [nfs, ['nfs4', 'nas:/csi', '/mnt/csi'], 'renamed', 'from the root of an NFSv4 server'],
  [{ ...nfs, path: '/csi' }, ['nfs', 'nas:/srv/csi', '/mnt/csi'], 'renamed', 'the other way around'],
  [{ ...nfs, path: '/si' }, ['nfs', 'nas:/srv/csi', '/mnt/csi'], 'other', 'the end of a name'],
  [{ ...nfs, host: '10.0.0.1' }, ['nfs', 'nas:/srv/csi', '/mnt/csi', '/', 'rw,addr=10.0.0.1'], 'share', 'an address'],
  [{ ...nfs, host: '10.0.0.1' }, ['nfs', 'nas:/srv/csi', '/mnt/csi', '/', 'rw,addr=10.0.0.2'], 'alias', 'another one'],
  [{ ...nfs, host: 'fe80::1' }, ['nfs', '[fe80:0::1]:/srv/csi', '/mnt/csi'], 'share', 'IPv6'],
  [nfs, ['cifs', '//nas/srv/csi', '/mnt/csi'], 'none', 'by another protocol'],
  [nfs, ['fuse.sshfs', 'nas:/srv/csi', '/mnt/csi'], 'none', 'by FUSE'],
  [nfs, ['fuse.fuse-overlayfs', 'fuse-overlayfs', '/'], 'none', 'all of this machine is on FUSE'],
  [nfs, ['virtiofs', 'root', '/'], 'none', 'all of this machine is on the host’s disk'],
  [smb, ['cifs', '//nas/CSI/sub', '/mnt/csi'], 'share', 'the name of the share in capitals'],
  [smb, ['cifs', '//nas/csi/Sub', '/mnt/csi'], 'other', 'the name of a folder in capitals'],
  [smb, ['cifs', '//nas/csi', '/mnt/csi', '/sub'], 'share', 'a folder of the share'],
  [smb, ['cifs', '//nas/csi/sub', '/mnt/csi', '/sub'], 'share', 'a folder of the share, told twice'],
  [smb, ['cifs', '//nas/csi/first', '/mnt/csi', '/sub'], 'share', 'named as the first mount of the share'],
  [{ ...smb, path: '/csi/a/b' }, ['smb3', '//nas/csi/a', '/mnt/csi', '/b'], 'renamed', 'a folder of a folder'],
  [lustre, ['lustre', 'mgs@tcp:/scratch', '/mnt/csi', '/csi'], 'share', 'a folder of the file system'],
  [lustre, ['lustre', 'mgs@tcp:/scratch', '/mnt/csi'], 'other', 'the whole file system'],
] as const satisfies readonly (readonly [ShareSource, Line, string, string])[]) {
  test(`what is at the base path: ${share.family}: ${name}: ${is}`, async () => {
    const fsType = { nfs: 'nfs', smb: 'cifs', lustre: 'lustre' }[share.family];
    const table = tableOf([line]);
    const found = await createShareSight(share, fsType).at(call, table, '/mnt/csi');
    assert.equal(found.is, is);
  });
}

const refused = (message: RegExp) => ({ code: 'FAILED_PRECONDITION', message });

test('another share at the base path is refused, volumes or not, unless the configuration names it', async (t) => {
  const { machine, base, guard } = await makeSite(t);
  await mkdir(join(base, 'v'));
  machine.mount('nas:/other', base);
  await assert.rejects(
    guard.ready(call),
    refused(/shows nas:\/other, not nas:\/x.*"controllerMountSource: nas:\/other"/),
  );
  const named = await makeSite(t, 'nas', undefined, sightOf('nas', '/x', 'nas:/other'));
  named.machine.mount('nas:/other', named.base);
  await named.guard.ready(call);
  assert.deepEqual(named.lines, []);
});

test('a file system that is no share is one by its source, if the configuration says so', async (t) => {
  const unsaid = await makeSite(t);
  unsaid.machine.mount('gluster:/vol', unsaid.base, 'fuse.glusterfs');
  await assert.rejects(unsaid.guard.ready(call), refused(/or "controllerMountSource: gluster:\/vol" if that/));
  const { machine, base, guard } = await makeSite(t, 'nas', undefined, sightOf('nas', '/x', 'gluster:/vol'));
  machine.mount('gluster:/vol', base, 'fuse.glusterfs');
  await guard.ready(call);
  machine.lines.pop();
  await mkdir(join(base, 'v'));
  await assert.rejects(guard.ready(call), refused(/any more/));
});

test('a file system that is no share is refused like a disk, and used like one where there are volumes', async (t) => {
  const { machine, base, guard, lines } = await makeSite(t);
  machine.mount('overlay', '/', 'fuse.fuse-overlayfs');
  await assert.rejects(guard.ready(call), refused(/is not mounted at .* or "controllerMount: local" if that/));
  await mkdir(join(base, 'v'));
  await guard.ready(call);
  assert.match(lines.join(), /a file system of type fuse\.fuse-overlayfs, not on nas:\/x/);
  machine.lines.pop();
  await assert.rejects(guard.ready(call), refused(/any more/), 'what was below is not what was used');
});

test('the share under another name of its server is used, with one warning', async (t) => {
  const { machine, base, guard, lines } = await makeSite(t);
  machine.mount('storage:/x', base);
  await guard.ready(call);
  await guard.ready(call);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /storage:\/x, which is taken for another name of nas:\/x/);
  machine.lines.pop();
  await mkdir(join(base, 'v'));
  await assert.rejects(guard.ready(call), refused(/any more/));
});

test('a path that may be the share is used where there are volumes', async (t) => {
  const { machine, base, guard, lines } = await makeSite(t);
  machine.mount('nas:/export/x', base);
  await assert.rejects(guard.ready(call), refused(/shows nas:\/export\/x, not nas:\/x/));
  await mkdir(join(base, 'v'));
  await guard.ready(call);
  assert.match(lines.join(), /taken for nas:\/x because there are volumes in it/);
});

test('two connections at one base path: only the one whose share is there without doubt', async (t) => {
  const { machine, base, guard } = await makeSite(t);
  await mkdir(join(base, 'v'));
  machine.mount('nas:/x', base);
  await guard.ready(call);
  const { readTable } = machine;
  const common = { base, files: localFiles, readTable, log: silentLogger };
  const second = createShareGuard({ ...common, host: 'nas2', title: 'nas2:/x', sight: sightOf('nas2') });
  t.after(() => second.close());
  await assert.rejects(second.ready(call), refused(/is where nas:\/x is worked on, too/));
  await guard.ready(call);
  // With nothing mounted the volumes there could be either's.
  machine.lines.pop();
  await assert.rejects(second.ready(call), refused(/is where nas:\/x is worked on, too/));
  guard.close();
  await second.ready(call);
});

test('a share that is mounted when somebody walks into it', async (t) => {
  const { machine, base } = await makeSite(t);
  machine.mount('/etc/auto.nas', base, 'autofs');
  const { readTable } = machine;
  const files = {
    ...localFiles,
    kindOf: async () => {
      machine.mount('nas:/x', base);
      return undefined;
    },
  };
  const options = { base, host: 'nas', title: 'nas:/x', sight: sightOf('nas'), files, readTable, log: silentLogger };
  const guard = createShareGuard(options);
  t.after(() => guard.close());
  await guard.ready(call);
});

test('a base path that is a symbolic link into a mount', async (t) => {
  const { machine, base } = await makeSite(t);
  const folder = await makeFolder(t);
  const link = join(folder, 'link');
  await symlink(base, link);
  machine.mount('nas:/x', base);
  const { readTable } = machine;
  const common = { base: link, host: 'nas', title: 'nas:/x', files: localFiles, readTable, log: silentLogger };
  await createShareGuard({ ...common, sight: sightOf('nas') }).ready(call);
});

test('another server or path in the configuration: the former share is unmounted before the new one is mounted', async (t) => {
  const { machine, base } = await makeSite(t);
  const of = (host: string, share: string) => {
    const sight = sightOf(host, share);
    const context = { node_attach_driver: 'nfs', server: host, share };
    const title = `${host}:${share}`;
    const mount = mountOf(machine, base, { sight, context, title });
    const { readTable } = machine;
    const options = { base, host, title, sight, files: localFiles, readTable, log: silentLogger };
    const guard = createShareGuard({ ...options, mount: { ...mount, hold: async () => {} } });
    return {
      guard,
      close: async () => {
        await mount.close();
        guard.close();
      },
    };
  };
  const shown = () => machine.lines.slice(1).map((line) => line.split(' - ')[1]);
  const first = of('nas', '/x');
  await first.guard.ready(call);
  for (const [host, share] of [
    ['nas2', '/x'],
    ['nas', '/y'],
  ] as const) {
    const next = of(host, share);
    await assert.rejects(next.guard.ready(call), { code: 'UNAVAILABLE', message: /while nas:\/x is used there/ });
    await next.close();
  }
  assert.deepEqual(shown(), ['nfs nas:/x rw'], 'the one that is used is left alone');
  const second = of('nas2', '/x');
  await assert.rejects(second.guard.ready(call), { code: 'UNAVAILABLE' });
  await first.close();
  await second.guard.ready(call);
  assert.deepEqual(shown(), ['nfs nas2:/x rw']);
  await second.close();
  assert.deepEqual(shown(), []);
});

test('what somebody else has mounted where the share is to be mounted is left alone', async (t) => {
  const { machine, base, guard } = await makeSite(t, 'nas', {});
  machine.mount('nas2:/x', base);
  await assert.rejects(guard.ready(call), refused(/is occupied by a mount of nas2:\/x/));
  assert.equal(machine.lines.length, 2);
});

test('volumes are in use where they are mounted by another name of their server, or of the share', () => {
  const sight = createShareSight(nfs, 'nfs');
  const table = tableOf([
    ['nfs4', 'storage:/export/csi', '/mnt/csi', '/', 'rw,addr=10.0.0.1'],
    ['nfs4', 'nas:/srv/csi/v/one', '/a'],
    ['nfs4', 'storage:/export/csi/v/one/sub', '/b', '/', 'rw,addr=10.0.0.1'],
    ['nfs', 'other-name:/srv/csi/v/one', '/c', '/', 'rw,addr=10.0.0.1'],
    ['nfs', 'nas3:/srv/csi/v/one', '/not/this/server', '/', 'rw,addr=10.0.0.3'],
    ['nfs', 'nas:/srv/csi/v/one2', '/not/this/volume'],
    ['cifs', '//nas/srv/csi/v/one', '/not/this/protocol'],
  ]);
  const mount = table.at('/mnt/csi');
  assert.ok(mount);
  const seen = { mount, shown: { ...nfs, host: 'storage', path: '/export/csi' } };
  assert.deepEqual(sight.mountPointsOf(table, 'v/one', seen), ['/a', '/b', '/c']);
  assert.deepEqual(sight.mountPointsOf(table, 'v/one', undefined), ['/a']);
});
