/** Real mounts from a root that holds nothing but the executable, by every host strategy. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { missing } from './executable-support.ts';
import { type LogLine, type Plugin, withPlugin } from './host-strategy-support.ts';
import { loopDevice } from './node-support.ts';

const skip = missing || (process.getuid?.() !== 0 && 'NOT TESTED: mounting takes root');

const mountEverything = `
mkdir "$folder/volumes/dir"
echo precious >"$folder/volumes/dir/data"
bind="--context node_attach_driver=hostpath --context path=$v/dir"
disk="--context node_attach_driver=hostpath --context path=$device"
ctl stage v:c/dir "$v/dir-staged" $bind
ctl publish v:c/dir "$v/dir-target" --staging "$v/dir-staged" $bind
ctl stage v:c/disk "$v/disk-staged" --fs-type ext4 $disk
ctl publish v:c/disk "$v/disk-target" --staging "$v/disk-staged" --fs-type ext4 $disk
ctl publish v:c/disk "$v/disk-reader" --staging "$v/disk-staged" --fs-type ext4 --readonly $disk
echo written >"$root$v/disk-target/file"
cat "$root$v/dir-target/data" "$root$v/disk-reader/file"
onhost cat "$folder/volumes/dir-target/data" "$folder/volumes/disk-reader/file"
ctl stats v:c/disk "$v/disk-target" >/dev/null
`;

const unmountEverything = `
for target in dir-target disk-target disk-reader; do ctl unpublish "v:c/\${target%-*}" "$v/$target"; done
for staged in dir-staged disk-staged; do ctl unstage "v:c/\${staged%-*}" "$v/$staged"; done
! grep "$folder/volumes/" /proc/self/mountinfo
! onhost grep "$folder/volumes/" /proc/self/mountinfo
ls "$folder/volumes"
`;

async function mountsAndUnmounts(t: TestContext, plugin: Plugin): Promise<readonly LogLine[]> {
  const { device } = await loopDevice(t, 32 * 2 ** 20);
  const { code, stdout, stderr, log } = await withPlugin(t, plugin, mountEverything + unmountEverything, { device });
  const commands = log.filter((line) => line.program !== undefined);
  const shown = commands
    .map((line) => `${line.by} ${line.program} ${line.args?.join(' ')}: ${line.outcome}`)
    .join('\n');
  assert.equal(code, 0, `${stderr}\n${shown}\n${stdout}`);
  const told = stdout.split('\n').filter((line) => ['precious', 'written', 'dir'].includes(line));
  assert.deepEqual(told, ['precious', 'written', 'precious', 'written', 'dir'], stdout);
  assert.ok(
    commands.some((line) => line.program === 'mkfs.ext4' && line.outcome === 'ok'),
    shown,
  );
  return commands;
}

const loader = /^\/host\/.*\/ld-linux[^/]*\.so\.\d$/;
const by = (commands: readonly LogLine[], program: string) => [
  ...new Set(commands.filter((line) => line.program === program).map((line) => line.by)),
];

test('without being told anything, with the host at /host as Docker and Nomad mount it', { skip }, async (t) => {
  const commands = await mountsAndUnmounts(t, { volumes: 'elsewhere', hostRoot: 'rprivate', options: [] });
  for (const { program, by } of commands) assert.match(by ?? '', loader, program);
});

test('loader: the programs of the host in this root, whatever /host shows', { skip }, async (t) => {
  const options = ['--host-strategy', 'loader'];
  const commands = await mountsAndUnmounts(t, { volumes: 'at the same path', hostRoot: 'rslave', options });
  assert.ok(commands.every((line) => !line.args?.includes('/host')));
});

for (const volumes of ['at the same path', 'elsewhere'] as const) {
  test(`chroot: in the host's root, with the volumes ${volumes}`, { skip }, async (t) => {
    const options = ['--host-strategy', 'chroot:/host'];
    const commands = await mountsAndUnmounts(t, { volumes, hostRoot: 'rshared', options });
    assert.match(by(commands, 'mount').join(), loader, 'there is no chroot but the host’s');
  });

  test(`nsenter: in the namespace of the host, with the volumes ${volumes}`, { skip }, async (t) => {
    const options = ['--host-strategy', 'nsenter'];
    await mountsAndUnmounts(t, { volumes, hostRoot: 'rslave', options });
  });
}

test('without /host, the host’s files are seen through its first process', { skip }, async (t) => {
  const commands = await mountsAndUnmounts(t, { volumes: 'elsewhere', hostRoot: 'none', options: [] });
  assert.match(by(commands, 'mount').join(), /^\/proc\/1\/root\/.*\/ld-linux[^/]*$/);
});

test('direct: on the host itself', { skip }, async (t) => {
  const plugin: Plugin = { volumes: 'at the same path', hostRoot: 'none', options: [], onHost: true };
  const commands = await mountsAndUnmounts(t, plugin);
  assert.deepEqual(by(commands, 'mount'), [undefined]);
});

test('a mount that would not be seen is refused before it is made', { skip }, async (t) => {
  const plugin: Plugin = { volumes: 'elsewhere', hostRoot: 'rprivate', options: ['--host-strategy', 'chroot'] };
  const commands = `
mkdir "$folder/volumes/dir"
! ctl stage v:c/dir "$v/staged" --context node_attach_driver=hostpath --context path=$v/dir
! grep "$folder/volumes/" /proc/self/mountinfo`;
  const { code, stderr, log } = await withPlugin(t, plugin, commands);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /FAILED_PRECONDITION: .*what it mounts there is not seen at \/local\/csi\/staged/);
  assert.deepEqual(
    log.filter((line) => line.program === 'mount'),
    [],
  );
});

test('a root without programs is told apart from a program that fails', { skip }, async (t) => {
  const plugin: Plugin = { volumes: 'elsewhere', hostRoot: 'none', options: ['--host-strategy', 'chroot'] };
  const commands = `
mkdir "$folder/volumes/dir"
! ctl stage v:c/dir "$v/staged" --context node_attach_driver=hostpath --context path=$v/dir`;
  const { code, stderr } = await withPlugin(t, plugin, commands);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /FAILED_PRECONDITION: .*host program `mount` was not found \(there is no directory \/host\)/);
});
