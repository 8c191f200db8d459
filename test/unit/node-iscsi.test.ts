import assert from 'node:assert/strict';
import { mkdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { loginSettings } from '../../src/node/attachers/iscsi/login-settings.ts';
import { isMarked, marked, settingIn, withSettings } from '../../src/node/attachers/iscsi/node-record.ts';
import { parsePortal, portalText } from '../../src/node/attachers/iscsi/portal.ts';
import { identityOf, volumeOf } from '../../src/node/attachers/iscsi/volume.ts';
import { thisOwner } from '../../src/node/owner.ts';
import { multipathId } from '../../src/node/scsi-disk.ts';
import { highestLun, lunCodes, lunOfCode } from '../../src/node/scsi-lun.ts';
import { iscsiMachine } from './iscsi-stand-in.ts';

const mib = 2 ** 20;
const disk = (id: string, bytes = 64 * mib) => ({ wwid: `naa.6001405${id}`, bytes });
const name = 'iqn.2026-01.org.example:t';
/** What a process knows of volumes outlives a test: each has a target of its own. */
let made = 0;
const newName = () => `${name}${++made}`;
const is =
  (code: string, text = /./) =>
  (error: unknown) =>
    error instanceof CallError && error.code === code && text.test(error.message);

test('portals are read as people write them', () => {
  const read = (text: string) => portalText(parsePortal(text));
  assert.equal(read('10.0.0.1'), '10.0.0.1:3260');
  assert.equal(read('10.0.0.1:3261'), '10.0.0.1:3261');
  assert.equal(read(' NAS-1.example:860 '), 'nas-1.example:860');
  assert.equal(read('[FD00::1]'), '[fd00::1]:3260');
  assert.equal(read('[fd00::1]:3261'), '[fd00::1]:3261');
  assert.equal(read('fd00::1'), '[fd00::1]:3260');
  for (const text of ['', ':3260', 'nas:0', 'nas:70000', 'nas:x', '[nas]:1x', '-o:1', 'a b', 'nas/..', '[::1]x']) {
    assert.throws(() => parsePortal(text), is('INVALID_ARGUMENT'), text);
  }
});

test('a volume is known by its target and LUN, wherever the target listens', () => {
  const context = {
    portal: '10.0.0.1',
    portals: '10.0.0.1:3260, [fd00::1],nas2:3261',
    iqn: 'iqn.2026-01.Org:X',
    lun: '007',
  };
  const volume = volumeOf(context);
  assert.deepEqual(volume.portals.map(portalText), ['10.0.0.1:3260', '[fd00::1]:3260', 'nas2:3261']);
  assert.deepEqual(identityOf(volume), { iqn: 'iqn.2026-01.org:x', lun: '7' });
  assert.equal(volume.iqn, context.iqn);
  for (const [key, value] of [
    ['iqn', ''],
    ['iqn', '../x'],
    ['iqn', 'x'],
    ['lun', ''],
    ['lun', '-1'],
    ['lun', '1;2'],
    ['interface', 'a b'],
  ]) {
    assert.throws(() => volumeOf({ ...context, [key as string]: value as string }), is('INVALID_ARGUMENT'), key);
  }
  assert.throws(() => volumeOf({ iqn: name, lun: '0', portals: ' , ' }), is('INVALID_ARGUMENT', /portal/));
  assert.deepEqual(
    ['', 'default'].map((one) => volumeOf({ ...context, interface: one }).interface),
    [undefined, undefined],
  );
});

test('every LUN is known again by each number that Linux may have for it', () => {
  assert.deepEqual(lunCodes(0)[0], 0);
  assert.deepEqual(lunCodes(256), [16640, 256]);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: highestLun }), (lun) => {
      assert.equal(lunOfCode(lunCodes(lun)[0] as number), lun);
    }),
    { numRuns: 300 },
  );
});

test('identifiers are written as multipath writes them', () => {
  assert.equal(multipathId('naa.6001405ea0'), '36001405ea0');
  assert.equal(multipathId('eui.0011223344556677'), '20011223344556677');
});

test('settings of a record replace what is there, and stand before its end', () => {
  const record = '# BEGIN\nnode.name = x\nnode.startup = automatic\n# END\n';
  const settings = { 'node.startup': 'manual', 'node.session.auth.password': 'a = b' };
  const text = marked(withSettings(record, settings));
  assert.equal(settingIn(text, 'node.startup'), 'manual');
  assert.equal(settingIn(text, 'node.session.auth.password'), 'a = b');
  assert.equal(settingIn(text, 'node.name'), 'x');
  assert.ok(isMarked(text) && !isMarked(record));
  assert.ok(text.endsWith('# END\n'));
  assert.equal(marked(withSettings(text, settings)), text);
});

test('secrets that are no settings are refused, and their values never told', () => {
  const refused = (key: string, value: string) =>
    assert.throws(
      () => loginSettings({ [key]: value }, {}),
      (error) => is('INVALID_ARGUMENT')(error) && !String(error).includes('hush'),
    );
  refused('node-db.node.name', 'hush');
  refused('node-db.node.conn[0].address', 'hush');
  refused('node-db.x y', 'hush');
  refused('node-db.node.session.auth.password', 'hush\nnode.name = y');
  refused('node-db.node.session.auth.password', `hush${'x'.repeat(255)}`);
  assert.deepEqual(loginSettings({ other: 'x' }, {}).secret, {});
  const { all, secret } = loginSettings({ 'node-db.node.session.auth.username': 'u' }, {});
  assert.deepEqual(secret, { 'node.session.auth.authmethod': 'CHAP', 'node.session.auth.username': 'u' });
  assert.deepEqual({ ...all, ...secret }, all);
});

test('secrets are those of the volume’s driver, of its instance before, and of nobody else', () => {
  const key = 'node-db.node.session.auth.username';
  const context = { provisioner_driver: 'zfs-generic-iscsi', provisioner_driver_instance_id: 'nas1' };
  const userOf = (...owners: readonly string[]) => {
    const secrets = Object.fromEntries(owners.map((owner) => [`${owner}${key}`, owner]));
    return loginSettings(secrets, context).secret['node.session.auth.username'];
  };
  const [general, driver, instance] = ['', 'zfs-generic-iscsi/', 'nas1/'].map((one) => `democratic-csi.org/${one}`);
  assert.equal(userOf('', general ?? ''), general);
  assert.equal(userOf(general ?? '', driver ?? ''), driver);
  assert.equal(userOf(instance ?? '', driver ?? ''), instance);
  assert.equal(userOf('democratic-csi.org/another/', 'another/'), undefined);
});

test('a volume is attached by three commands, by two the next time, and detached by one', async (t) => {
  const machine = await iscsiMachine(t);
  const [iqn, second] = [newName(), newName()];
  for (const one of [iqn, second]) machine.targets[one] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  const context = { portal: '10.0.0.1', iqn, lun: '0' };
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/sda' });
  assert.deepEqual(machine.ran(), ['iscsiadm', 'iscsiadm', 'tee']);
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/sda' });
  assert.deepEqual(machine.ran(), ['tee']);
  const [record = ''] = await machine.records();
  const text = await readFile(record, 'utf8');
  assert.equal(settingIn(text, 'node.startup'), 'manual');
  assert.equal(settingIn(text, 'node.session.timeo.replacement_timeout'), '77');
  assert.deepEqual(await machine.attacher.identify?.('8:16'), { iqn, lun: '0' });
  assert.equal(await machine.attacher.identify?.('7:0'), undefined);

  await machine.attach({ ...context, iqn: second });
  assert.deepEqual(machine.ran(), ['iscsiadm', 'tee']);
  await machine.detach(second, '0');
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.ran(), ['iscsiadm', 'iscsiadm']);
  await machine.detach(iqn, '0');
  assert.deepEqual([machine.ran(), machine.sessions(), await machine.records()], [[], [], []]);
});

for (const database of ['/etc/iscsi', '/var/lib/iscsi']) {
  test(`secrets are in a file of ${database} that only root reads, and in no argument`, async (t) => {
    const machine = await iscsiMachine(t, database);
    const iqn = newName();
    machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') }, password: 'hush hush' };
    const context = { portal: '10.0.0.1', iqn, lun: '0' };
    const secrets = { 'node-db.node.session.auth.username': 'u', 'node-db.node.session.auth.password': 'hush hush' };
    await assert.rejects(machine.attach(context), is('UNAUTHENTICATED', /10\.0\.0\.1:3260/));
    const wrong = { ...secrets, 'node-db.node.session.auth.password': 'hush it' };
    await assert.rejects(
      machine.attach(context, wrong),
      (error) => is('UNAUTHENTICATED')(error) && !/hush/.test(String(error)),
    );
    await machine.attach(context, secrets);
    const [record = ''] = await machine.records();
    assert.ok(record.startsWith(machine.nodes));
    assert.equal((await stat(record)).mode & 0o777, 0o600);
    assert.ok(!machine.commands.some(({ args }) => args.some((one) => one.includes('hush'))));
  });
}

test('one portal is enough, and without multipathd one is all', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.2:3260', '10.0.0.3:3260'], luns: { 1: disk('a') } };
  const context = { portals: '10.0.0.1,10.0.0.2,10.0.0.3', iqn, lun: '1' };
  await machine.attach(context);
  assert.deepEqual(machine.sessions(), [iqn]);
  await machine.attach(context);
  assert.deepEqual(machine.sessions(), [iqn]);
  machine.targets[iqn].portals = [];
  await machine.detach(iqn, '1');
  await assert.rejects(
    machine.attach(context),
    is('UNAVAILABLE', /10\.0\.0\.1:3260: .*10\.0\.0\.2:3260: .*10\.0\.0\.3:3260: /),
  );
  await machine.detach(iqn, '1');
  assert.deepEqual(await machine.records(), []);
});

test('multipathd joins the paths there are; one that comes back is joined by the next attach', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.state.multipathd = true;
  machine.targets[iqn] = { portals: ['10.0.0.2:3260'], luns: { 0: disk('a') } };
  const context = { portals: '10.0.0.1,10.0.0.2', iqn, lun: '0' };
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/dm-0' });
  assert.deepEqual(machine.sessions(), [iqn]);
  assert.deepEqual(await machine.attacher.identify?.('254:0'), { iqn, lun: '0' });
  machine.inUse.add('254:0');
  await assert.rejects(async () => machine.detach(iqn, '0'), is('FAILED_PRECONDITION'));
  assert.deepEqual(machine.sessions(), [iqn]);
  machine.inUse.clear();
  machine.ran();
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.ran(), ['multipath', 'iscsiadm']);
  machine.targets[iqn]?.portals.push('10.0.0.1:3260');
  await machine.attach(context);
  assert.deepEqual(machine.sessions(), [iqn, iqn]);
  await machine.detach(iqn, '0');
  assert.deepEqual([machine.sessions(), await machine.records()], [[], []]);
});

test('two disks of one name are not one volume', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.state.multipathd = true;
  const lunsAt = { '10.0.0.2:3260': { 0: disk('b') } };
  machine.targets[iqn] = { portals: ['10.0.0.1:3260', '10.0.0.2:3260'], luns: { 0: disk('a') }, lunsAt };
  const context = { portals: '10.0.0.1,10.0.0.2', iqn, lun: '0' };
  await assert.rejects(machine.attach(context), is('FAILED_PRECONDITION', /another disk on each path/));
});

test('a session stays while it carries anything else', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a'), 1: disk('b'), 300: disk('c') } };
  const context = (lun: string) => ({ portal: '10.0.0.1', iqn, lun });
  await machine.attach(context('0'));
  await machine.attach(context('1'));
  assert.deepEqual(machine.sessions(), [iqn]);
  machine.ran();
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.ran(), ['tee']);
  assert.equal(await machine.attacher.identify?.('8:16'), undefined);
  assert.deepEqual(await machine.attacher.identify?.('8:32'), { iqn, lun: '1' });

  // Another process has a record of a volume, or uses a disk, or has mounted the node of one.
  await machine.attach(context('300'));
  await machine.detach(iqn, '1', [{ iqn: iqn.toUpperCase(), lun: '5' }]);
  assert.deepEqual(machine.sessions(), [iqn]);
  await machine.detach(iqn, '300', [{ iqn: 'iqn.2026-01.org.example:another', lun: '5' }]);
  assert.deepEqual([machine.sessions(), await machine.records()], [[], []]);
});

test('disks of a session that others use keep it: held, open, or mounted as they are', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  await machine.attach({ portal: '10.0.0.1', iqn, lun: '0' });
  const unit = join(machine.sysfs, 'devices/platform/host1/session1/target0:0:0/1:0:0:9/block/sdx');
  await mkdir(unit, { recursive: true });
  await writeFile(join(unit, 'dev'), '65:112\n');
  await writeFile(join(unit, 'size'), '2048\n');
  machine.inUse.add('65:112');
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.sessions(), [iqn]);
  machine.inUse.clear();
  machine.opened.add('65:112');
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.sessions(), [iqn]);
  machine.opened.clear();
  machine.state.mounts = '36 35 0:5 /sdx /mnt/block rw - devtmpfs devtmpfs rw';
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.sessions(), [iqn]);
  machine.state.mounts = '';
  for (const link of ['class/block/sdx', 'dev/block/65:112']) await writeFile(join(machine.sysfs, link), '');
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.sessions(), []);
});

test('a session that the machine makes itself when it starts is used and left', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  const context = { portal: '10.0.0.1', iqn, lun: '0' };
  await machine.attach(context);
  const [record = ''] = await machine.records();
  await writeFile(record, withSettings(await readFile(record, 'utf8'), { 'node.startup': 'automatic' }));
  await machine.detach(iqn, '0');
  assert.deepEqual([machine.sessions(), await machine.records()], [[iqn], [record]]);
});

test('a LUN that became another disk is seen as what it is, unless somebody uses it', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  const context = { portal: '10.0.0.1', iqn, lun: '0' };
  await machine.attach(context);
  machine.targets[iqn].luns = { 0: disk('b') };
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/sdb' });
  machine.targets[iqn].luns = { 0: disk('c') };
  machine.inUse.add('8:32');
  await assert.rejects(machine.attach(context), is('FAILED_PRECONDITION', /in use/));
  machine.inUse.clear();
  machine.targets[iqn].luns = { 0: disk('d') };
  machine.opened.add('8:32');
  await assert.rejects(machine.attach(context), is('FAILED_PRECONDITION', /open/));
  machine.opened.clear();
  machine.targets[iqn].luns = { 0: disk('e') };
  machine.state.mounts = '36 35 0:5 /sdb /mnt/block rw - devtmpfs devtmpfs rw';
  await assert.rejects(machine.attach(context), is('FAILED_PRECONDITION', /mounted at \/mnt\/block/));
  machine.state.mounts = '';
  machine.targets[iqn].luns = {};
  await assert.rejects(machine.attach(context), is('NOT_FOUND', /no LUN 0/));
});

test('LUN 256 is found under either of its numbers', async (t) => {
  for (const code of [256, 16640]) {
    const machine = await iscsiMachine(t);
    const iqn = newName();
    machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { [code]: disk('a'), 0: disk('b') } };
    assert.deepEqual(await machine.attach({ portal: '10.0.0.1', iqn, lun: '256' }), {
      type: 'device',
      path: '/dev/sda',
    });
    assert.deepEqual(await machine.attacher.identify?.('8:16'), { iqn, lun: '256' });
  }
});

test('without iscsid, it says so, leaves no record, and nothing is taken for detached', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  const context = { portal: '10.0.0.1', iqn, lun: '0' };
  machine.state.iscsid = false;
  await assert.rejects(machine.attach(context), is('FAILED_PRECONDITION', /iscsid/));
  assert.deepEqual(await machine.records(), []);
  machine.state.iscsid = true;
  await machine.attach(context);
  machine.state.iscsid = false;
  await assert.rejects(async () => machine.detach(iqn, '0'), is('FAILED_PRECONDITION', /iscsid/));
  machine.state.iscsid = true;
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.sessions(), []);
});

test('a device grows where the target has grown it', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  await machine.attach({ portal: '10.0.0.1', iqn, lun: '0' });
  machine.targets[iqn].luns = { 0: disk('a', 128 * mib) };
  await machine.attacher.rescan?.(detachedContext(silentLogger), '8:16');
  const size = await readFile(join(machine.sysfs, 'dev/block/8:16/size'), 'utf8');
  assert.equal(Number(size) * 512, 128 * mib);
  machine.ran();
  await machine.attacher.rescan?.(detachedContext(silentLogger), '7:0');
  assert.deepEqual(machine.ran(), []);
});

test('an interface that iscsiadm knows is used, any other is left out', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  const context = { portal: '10.0.0.1', iqn, lun: '0', interface: 'storage' };
  await machine.attach(context);
  const named = () => machine.commands.splice(0).filter(({ args }) => args.join(' ').includes('-I storage')).length;
  assert.equal(named(), 0);
  await machine.detach(iqn, '0');
  await mkdir(join(machine.nodes, '../ifaces'), { recursive: true });
  await writeFile(join(machine.nodes, '../ifaces/storage'), 'iface.net_ifacename = eth1\n');
  await machine.attach(context);
  assert.equal(named(), 2);
  await machine.attach(context);
  assert.deepEqual(machine.sessions(), [iqn]);
  await machine.detach(iqn, '0');
  assert.deepEqual(await machine.records(), []);
});

test('while a disk of a session that was lost is in use, there is no second one of the volume', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  const portals = ['10.0.0.1:3260', '10.0.0.2:3260'];
  machine.targets[iqn] = { portals: [...portals], luns: { 0: disk('a'), 1: disk('b') } };
  const context = { portals: portals.join(), iqn, lun: '0' };
  await machine.attach(context);
  await machine.setState(1, 'FAILED');
  machine.targets[iqn].portals.shift();

  // Mounted, or opened by somebody, or published as a block device.
  machine.inUse.add('8:16');
  const refused = is('UNAVAILABLE', /in use here as sda, whose session at 10\.0\.0\.1:3260 was lost/);
  await assert.rejects(machine.attach(context), refused);
  assert.deepEqual(machine.sessions(), [iqn]);
  machine.inUse.clear();
  // Nobody uses it: the other portal will do.
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/sdb' });
  assert.deepEqual(machine.sessions(), [iqn, iqn]);
  // Both are there again: always the one that is in use.
  await machine.setState(1, 'LOGGED_IN');
  machine.inUse.add('8:32');
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/sdb' });
  machine.inUse.clear();
  machine.state.mounts = '36 35 0:5 /sda /mnt/block rw - devtmpfs devtmpfs rw';
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/sda' });
  machine.state.mounts = '';
  await machine.detach(iqn, '0');
  assert.deepEqual(machine.sessions(), []);
});

test('a disk that is in use by itself is not joined with others beside it', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260', '10.0.0.2:3260'], luns: { 0: disk('a') } };
  await machine.attach({ portal: '10.0.0.1', iqn, lun: '0' });
  machine.state.multipathd = true;
  machine.state.mounts = '36 35 8:16 / /mnt rw - xfs /dev/sda rw';
  machine.held.add('sda');
  const context = { portals: '10.0.0.1,10.0.0.2', iqn, lun: '0' };
  assert.deepEqual(await machine.attach(context), { type: 'device', path: '/dev/sda' });
});

test('a session that somebody made by hand keeps its other disks and its record', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a'), 1: disk('b') } };
  const record = await machine.logInByHand(iqn, '10.0.0.1:3260');
  const before = await readFile(record, 'utf8');
  await machine.attach({ portal: '10.0.0.1', iqn, lun: '0' });
  await machine.detach(iqn, '0');
  assert.deepEqual([machine.sessions(), await machine.records()], [[iqn], [record]]);
  assert.equal(await machine.attacher.identify?.('8:16'), undefined);
  assert.deepEqual(await machine.attacher.identify?.('8:32'), { iqn, lun: '1' });

  // Its record is used where its session was lost; what it does not say of credentials, it learns.
  await machine.logout(1);
  machine.targets[iqn].password = 'hush hush';
  const secrets = { 'node-db.node.session.auth.username': 'u', 'node-db.node.session.auth.password': 'hush hush' };
  await machine.attach({ portal: '10.0.0.1', iqn, lun: '0' }, secrets);
  await machine.detach(iqn, '0');
  assert.deepEqual([machine.sessions(), await machine.records()], [[iqn], [record]]);
  const now = (await readFile(record, 'utf8')).split('\n');
  assert.deepEqual(
    before.split('\n').filter((line) => !now.includes(line)),
    [],
  );
});

test('what a process left that was killed while iscsiadm made a record is removed by the next one, and when the volume goes', async (t) => {
  const machine = await iscsiMachine(t);
  const iqn = newName();
  machine.targets[iqn] = { portals: ['10.0.0.1:3260'], luns: { 0: disk('a') } };
  const [boot, namespace] = (await thisOwner()).split('.');
  const names = [`${boot}.${namespace}.1.1`, `000000000000.${namespace}.1.1`, `${boot}.1.1.1`];
  const leave = async (owner = '') => {
    const args = ['-m', 'node', '-T', `iqn.1970-01.invalid:sample.${owner}`, '-p', '10.0.0.1:3260', '-o', 'new'];
    await machine.run({ program: 'iscsiadm', args });
  };
  for (const owner of names) await leave(owner);
  await machine.attach({ portal: '10.0.0.1', iqn, lun: '0' });
  const left = (await machine.records()).map((path) => path.slice(machine.nodes.length + 1));
  // The last one may be that of another container, which may still be at work.
  const expected = [`${iqn}/10.0.0.1,3260`, `iqn.1970-01.invalid:sample.${names[2]}/10.0.0.1,3260`];
  assert.deepEqual(left.toSorted(), expected.toSorted());
  assert.equal(settingIn(await readFile(join(machine.nodes, `${iqn}/10.0.0.1,3260`), 'utf8'), 'node.name'), iqn);
  await leave(names[0]);
  const [foreign = ''] = (await machine.records()).filter((path) => path.includes(`sample.${names[2]}`));
  await machine.detach(iqn, '0');
  assert.deepEqual(await machine.records(), [foreign]);
  await utimes(foreign, 0, 0);
  await machine.detach(iqn, '0');
  assert.deepEqual(await machine.records(), [], 'nobody takes that long');
});
