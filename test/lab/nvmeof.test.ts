/** What goes wrong with NVMe over Fabrics: portals that are dead, subsystems that are shared, targets that go away, processes that are killed. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { type NodeVolume, nodeVolume } from './node-volume.ts';
import { createBackingFile } from './services/backing.ts';
import { createNvmePort, createNvmeSubsystem, startNvmeHost } from './services/nvme-subsystem.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const target = '/sys/kernel/config/nvmet';

describe('NVMe over TCP, when things go wrong', { skip: noGuests, timeout: 300_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('nvmefault');
    await startNvmeHost(guest);
    await createNvmePort(guest, 1, guest.address, 4420);
    await createNvmePort(guest, 2, guest.address, 4421);
    for (const [name, count] of [
      ['one', 1],
      ['two', 2],
    ] as const) {
      const namespaces: Record<number, string> = {};
      for (let nsid = 1; nsid <= count; nsid++) {
        namespaces[nsid] = await createBackingFile(guest, `${name}${nsid}`, 64 * mib);
      }
      await createNvmeSubsystem(guest, { nqn: nqnOf(name), ports: [1, 2], namespaces });
    }
    // Takes connections, and never says a word.
    guest.start(`exec python3 -c 'import socket,time
s = socket.create_server(("10.0.2.15", 4499)); time.sleep(1000)'`);
    server = await startSwitchboard(guest);
  });
  afterEach(() => assertNothingLeft(guest, server));
  after(() => guest?.down());

  const nqnOf = (name: string) => `nqn.2026-01.org.lab:${name}`;
  const volume = (id: string, name: string, more: Readonly<Record<string, string>> = {}): NodeVolume =>
    nodeVolume(() => server, {
      id,
      context: {
        node_attach_driver: 'nvmeof',
        nqn: nqnOf(name),
        nsid: '1',
        transports: 'tcp://10.0.2.15,tcp://10.0.2.15:4421',
        ...more,
      },
    });
  const refused = (code: string, message: RegExp) => ({ code, message });
  const connections = async () => (await guest.run('ls /sys/class/nvme')).split('\n').filter(Boolean).length;

  test('dead portals neither fail nor long delay a stage; a later one connects them', async () => {
    const dead = 'tcp://10.0.2.15:9,tcp://10.0.2.77,tcp://10.0.2.15:4499,tcp://nowhere.invalid';
    const one = volume('dead', 'one', { transports: `${dead},tcp://10.0.2.15:4421` });
    const began = Date.now();
    await one.stage();
    const took = Date.now() - began;
    assert.ok(took < 15_000, `${took} ms`);
    const warned = server.log.filter(({ message }) => message === 'one of the ways to a volume is not there');
    assert.equal(new Set(warned.map(({ transport }) => transport)).size, 4);
    assert.equal(await connections(), 1);
    await volume('dead', 'one').stage();
    assert.equal(await connections(), 2);
    await one.unstage();
  });

  test('a stage says of every portal why it does not work', async () => {
    const none = volume('none', 'one', { transports: 'tcp://10.0.2.15:9,tcp://10.0.2.77,tcp://10.0.2.15:4499' });
    await assert.rejects(none.stage(), (error: Error & { code: string }) => {
      assert.equal(error.code, 'UNAVAILABLE');
      assert.match(
        error.message,
        /:9: connection refused; .*\.77:4420: it does not answer; .*:4499: something answers/,
      );
      return true;
    });
    await none.unstage();
    const unknown = volume('none', 'nobody');
    await assert.rejects(unknown.stage(), refused('UNAVAILABLE', /it has no nqn\.2026-01\.org\.lab:nobody/));
    await unknown.unstage();
    const missing = volume('none', 'one', { nsid: '7' });
    await assert.rejects(missing.stage(), refused('NOT_FOUND', /has no namespace 7; it has 1/));
    await missing.unstage();
  });

  test('a namespace that is another one than the volume’s is refused', async () => {
    const other = volume('other', 'one', { uuid: '11111111-2222-3333-4444-555555555555' });
    await assert.rejects(other.stage(), refused('FAILED_PRECONDITION', /is another one than this volume/));
    await other.unstage();
    const uuid = await guest.run(`cat ${target}/subsystems/${nqnOf('one')}/namespaces/1/device_uuid`);
    const same = volume('same', 'one', { uuid: uuid.trim().toUpperCase() });
    await same.stage();
    await same.unstage();
  });

  test('a subsystem stays connected for as long as any of its namespaces is in use', async () => {
    const [first, second] = [volume('first', 'two'), volume('second', 'two', { nsid: '2' })];
    await Promise.all([first.stage(), second.stage()]);
    await guest.run(`echo first >${first.staging}/file; echo second >${second.staging}/file; sync`);
    await first.unstage();
    assert.equal(await connections(), 2);
    await guest.run(`echo 3 >/proc/sys/vm/drop_caches; grep -q second ${second.staging}/file`);
    await first.stage();
    await guest.run(`grep -q first ${first.staging}/file`);
    await Promise.all([first.unstage(), second.unstage()]);
  });

  test('and also when somebody else uses it, where this process does not see it', async () => {
    const first = volume('first', 'two');
    await first.stage();
    // A mount namespace of its own, as containers have.
    await guest.run(`device=/dev/$(basename $(dirname $(grep -lx 2 /sys/block/nvme[0-9]n[0-9]/nsid)))
      mkfs.ext4 -qF $device; mkdir -p /run/theirs
      setsid unshare -m --propagation private sh -c "mount $device /run/theirs; touch /run/ready; exec sleep 1000" >/dev/null 2>&1 </dev/null &
      echo $! >/run/theirs.pid; until [ -e /run/ready ]; do sleep 0.05; done`);
    await first.unstage();
    assert.equal(await connections(), 2);
    await first.stage();
    await guest.run('kill $(cat /run/theirs.pid)');
    await first.unstage();
  });

  test('the target is gone for a while', async () => {
    const one = volume('gone', 'one', { transports: 'tcp://10.0.2.15?reconnect-delay=1' });
    await one.stage();
    await guest.run(`echo before >${one.staging}/file; sync`);
    await guest.run(`nft add table inet gone
      nft add chain inet gone in '{ type filter hook input priority 0; }'
      nft add rule inet gone in tcp dport 4420 reject with tcp reset`);
    await guest.run('until grep -q connecting /sys/class/nvme/*/state; do sleep 0.05; done');
    const staged = one.stage();
    const written = guest.run(`echo after >>${one.staging}/file; sync`);
    await setTimeout(2000);
    await guest.run('nft delete table inet gone');
    await Promise.all([staged, written]);
    assert.equal(await guest.run(`cat ${one.staging}/file`), 'before\nafter\n');
    await one.unstage();
  });

  test('connections that somebody ended are made again, and what hung on them is mounted anew', async () => {
    const one = volume('ended', 'one');
    await one.stage();
    await one.publish('rw');
    await guest.run(`echo kept >${one.target('rw')}/file; sync; nvme disconnect -n ${nqnOf('one')}`);
    assert.match((await one.stats('rw')).trouble, /is gone/);
    await one.unpublish('rw');
    await one.stage();
    await one.publish('rw');
    assert.equal(await guest.run(`cat ${one.target('rw')}/file`), 'kept\n');
    await one.unpublish('rw');
    await guest.run(`nvme disconnect -n ${nqnOf('one')}`);
    await one.unstage();
  });

  test('many volumes of one subsystem come and go at once', async () => {
    const nsids = Array.from({ length: 16 }, (_, index) => index + 1);
    const namespaces: Record<number, string> = {};
    for (const nsid of nsids) namespaces[nsid] = await createBackingFile(guest, `many${nsid}`, 64 * mib);
    await createNvmeSubsystem(guest, { nqn: nqnOf('many'), ports: [1, 2], namespaces });
    const volumes = nsids.map((nsid) => volume(`many-${nsid}`, 'many', { nsid: String(nsid) }));
    await Promise.all(volumes.map((one) => one.stage()));
    await Promise.all(volumes.map((one, index) => guest.run(`echo ${index} >${one.staging}/file`)));
    assert.equal(await connections(), 2);
    // Half of them leave while the others come.
    const half = (odd: number) => volumes.filter((_one, index) => index % 2 === odd);
    await Promise.all(half(0).map((one) => one.unstage()));
    await Promise.all([...half(1).map((one) => one.unstage()), ...half(0).map((one) => one.stage())]);
    for (const [index, one] of volumes.entries()) {
      if (index % 2 === 0) assert.equal(await guest.run(`cat ${one.staging}/file`), `${index}\n`);
    }
    await Promise.all(half(0).map((one) => one.unstage()));
  });

  test('a process killed at any moment of a stage leaves nothing that the next one does not find', async () => {
    const one = volume('killed', 'one');
    for (const pause of [20, 60, 120, 200, 300, 450, 700]) {
      const stage = one.stage().catch(() => {});
      await setTimeout(pause);
      await server.kill();
      await stage;
      server = await startSwitchboard(guest);
      if (pause % 40 === 0) await one.stage();
      await one.unstage();
      await assertNothingLeft(guest, server);
    }
  });

  test('nothing that is secret is logged', async () => {
    const secret = 'DHHC-1:00:c2VjcmV0LW9mLXRoZS1sYWI=:';
    const one = volume('secret', 'one', { transports: `tcp://10.0.2.15?dhchap-secret=${secret}` });
    // The guests' kernel knows no authentication.
    await assert.rejects(one.stage(), refused('UNAVAILABLE', /the kernel refuses the options/));
    await one.unstage();
    assert.ok(!JSON.stringify(server.log).includes('c2VjcmV0'));
  });
});
