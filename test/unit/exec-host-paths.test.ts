import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSharedPlace, pathThere, placeThere, type TwoRoots } from '../../src/backends/exec/path-there.ts';
import { setsMountFlags, translateArguments } from '../../src/backends/exec/translate-arguments.ts';
import { parseMountTable } from '../../src/node/mount-table.ts';

/** `id parent device root mountPoint [shared:N|master:N …]` */
function table(...lines: string[]) {
  const full = lines.map((line) => {
    const [id, parent, device, root, point, ...propagation] = line.split(' ');
    return [id, parent, device, root, point, 'rw', ...propagation, '-', 'ext4', '/dev/x', 'rw'].join(' ');
  });
  return parseMountTable(full.join('\n'));
}

function chroot(...lines: string[]): TwoRoots {
  const here = table(...lines);
  return { here, there: here, root: '/host' };
}

const volume = 'pods/p1/volumes/v1/mount';

/** A pod with the kubelet's directory at its own path, and the host's root with mountPropagation Bidirectional. */
const kubernetes = chroot(
  '1 0 0:50 / / master:9',
  '2 1 8:1 / /host shared:1',
  '3 1 8:1 /var/lib/kubelet /var/lib/kubelet shared:1',
  '4 1 0:5 / /dev master:2',
);

/** A managed plugin of Docker with /host rshared. */
const docker = chroot(
  '1 0 0:50 / / shared:20',
  '2 1 8:1 / /host shared:1',
  '3 1 8:1 /var/lib/docker/plugins/abc/propagated-mount /data shared:7',
  '4 2 8:1 /var/lib/docker/plugins/abc/propagated-mount /host/var/lib/docker/plugins/abc/propagated-mount shared:7',
);

/** A docker task of Nomad whose volume of the host's root has no propagation set. */
const nomadPrivate = chroot(
  '1 0 0:50 / /',
  '2 1 8:1 / /host',
  '3 1 8:1 /opt/nomad/client/csi/monolith/nas /local/csi shared:1',
);

test('Kubernetes: paths are the same in the root of the host', () => {
  assert.equal(pathThere('/var/lib/kubelet/pods', kubernetes), '/var/lib/kubelet/pods');
  assert.equal(placeThere(`/var/lib/kubelet/${volume}`, kubernetes), `/var/lib/kubelet/${volume}`);
  assert.equal(isSharedPlace(`/var/lib/kubelet/${volume}`, kubernetes), true);
});

test('Docker: the propagated mount is found where the host has it', () => {
  const there = '/var/lib/docker/plugins/abc/propagated-mount';
  assert.equal(pathThere('/data/published', docker), `${there}/published`);
  assert.equal(placeThere('/data/published/v1', docker), `${there}/published/v1`);
  assert.deepEqual(translateArguments('mount', ['-t', 'nfs', '-o', 'vers=4', 'nas:/data', '/data/staged/v1'], docker), [
    '-t',
    'nfs',
    '-o',
    'vers=4',
    'nas:/data',
    `${there}/staged/v1`,
  ]);
  const onedata = ['-H', 'one.example.org', '--space', 'x'];
  assert.deepEqual(translateArguments('oneclient', [...onedata, '/data/v1'], docker), [...onedata, `${there}/v1`]);
});

test('Nomad: files can be reached below a private /host, but mounts made there are not seen', () => {
  assert.equal(pathThere('/local/csi/staging', nomadPrivate), '/opt/nomad/client/csi/monolith/nas/staging');
  assert.equal(placeThere('/local/csi/staging/v1', nomadPrivate), undefined);
  assert.equal(isSharedPlace('/local/csi/staging/v1', nomadPrivate), false);
  assert.throws(() => translateArguments('mount', ['-t', 'nfs', 'nas:/x', '/local/csi/staging/v1'], nomadPrivate), {
    code: 'FAILED_PRECONDITION',
    message: /not seen at \/local\/csi\/staging\/v1 here: .*shared propagation/,
  });
  assert.throws(() => translateArguments('umount', ['/local/csi/staging/v1'], nomadPrivate), {
    code: 'FAILED_PRECONDITION',
  });
});

test('nsenter: a mount of the host is seen here by a group that follows it, but not the other way round', () => {
  const here = table('1 0 0:50 / /', '2 1 8:1 /srv /csi master:1');
  const there = table('10 0 8:1 / / shared:1');
  const roots = { here, there, root: '/' };
  assert.equal(placeThere('/csi/v1', roots), '/srv/v1');
  assert.equal(isSharedPlace('/csi/v1', roots), false);
});

test('a volume that is mounted several times is unmounted where it was asked for', () => {
  const both = chroot(
    '1 0 0:50 / / master:9',
    '2 1 8:1 / /host shared:1',
    '3 1 8:1 /k /k shared:1',
    '4 2 7:0 / /host/k/staged shared:3',
    '5 3 7:0 / /k/staged shared:3',
    '6 2 7:0 / /host/k/published shared:3',
    '7 3 7:0 / /k/published shared:3',
  );
  assert.deepEqual(translateArguments('umount', ['/k/published'], both), ['/k/published']);
  assert.deepEqual(translateArguments('umount', ['-l', '/k/staged'], both), ['-l', '/k/staged']);
  const source = translateArguments('mount', ['-o', 'bind', '/k/staged', '/k/other'], both);
  assert.deepEqual(source, ['-o', 'bind', '/k/staged', '/k/other']);
});

test('what another mount hides is not taken for the file', () => {
  const hidden = chroot(
    '1 0 0:50 / /',
    '2 1 8:1 / /host shared:1',
    '3 1 8:1 /k /k shared:1',
    '4 2 0:60 / /host/k shared:4',
  );
  assert.equal(pathThere('/k/file', hidden), undefined);
  assert.equal(placeThere('/k/v1', hidden), undefined);
});

test('a path below /host is the path without it', () => {
  assert.equal(pathThere('/host/var/lib/x', nomadPrivate), '/var/lib/x');
  assert.equal(placeThere('/host/var/lib/x', nomadPrivate), '/var/lib/x');
  assert.equal(pathThere('/host', nomadPrivate), '/');
});

test('devices, kernel files, servers and options stay as they are', () => {
  const args = ['-p', '/dev/sda1', '/proc/self/mounts', '/sys/block', '//server/share', '-x', 'word', '/', ''];
  assert.deepEqual(translateArguments('blkid', args, docker), args);
  const cifs = ['-t', 'cifs', '-o', 'vers=3.0', '//server/share', '/data/staged/v1'];
  assert.equal(translateArguments('mount', cifs, docker)[4], '//server/share');
});

test('a path of this root alone is the business of the program', () => {
  assert.deepEqual(translateArguments('stat', ['/srv/x'], docker), ['/srv/x']);
});

test('a program is not let near a path that is another one there', () => {
  const refused = { code: 'FAILED_PRECONDITION' } as const;
  const there = '/var/lib/docker/plugins/abc/propagated-mount';
  assert.deepEqual(translateArguments('stat', ['-L', '/data/x'], docker), ['-L', `${there}/x`]);
  assert.throws(() => translateArguments('realpath', ['-e', '/data/x'], docker), refused, 'its answer would be wrong');
  assert.throws(() => translateArguments('xfs_quota', ['-c', 'project -s -p /data/x 1'], docker), refused);
  assert.throws(() => translateArguments('tool', ['--file=/data/x'], docker), refused);
  const same = ['-c', 'project -s -p /var/lib/kubelet/x 1', '--file=/var/lib/kubelet/x'];
  assert.deepEqual(translateArguments('xfs_quota', same, kubernetes), same);
  const unreachable = chroot('1 0 0:50 / /', '2 1 8:1 / /host', '3 1 9:9 / /data shared:1');
  assert.throws(() => translateArguments('stat', ['/data/x'], unreachable), refused);
});

test('binds and remounts set flags of one mount', () => {
  for (const options of ['bind', 'bind,ro', 'ro,rbind', 'remount,rw'])
    assert.equal(setsMountFlags(['-o', options, '/a', '/b']), true, options);
  assert.equal(setsMountFlags(['--bind', '/a', '/b']), true);
  assert.equal(setsMountFlags(['-t', 'ext4', '-o', 'ro,noatime', '/dev/sda', '/b']), false);
  assert.equal(setsMountFlags(['bind', '/b']), false);
});
