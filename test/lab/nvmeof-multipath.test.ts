/** NVMe over Fabrics on kernels that do not join the paths of a namespace themselves. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { lifecycle } from './lifecycle.ts';
import { nodeVolume } from './node-volume.ts';
import { createBackingFile, growBacking } from './services/backing.ts';
import { createNvmePort, createNvmeSubsystem, resizeNamespace, startNvmeHost } from './services/nvme-subsystem.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const nqn = 'nqn.2026-01.org.lab:paths';

describe('NVMe over TCP without native multipath', { skip: noGuests, timeout: 300_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  let paths: string[];
  before(async () => {
    guest = await boot('nvmepaths');
    await guest.run('modprobe nvme_core multipath=N');
    await startNvmeHost(guest);
    await createNvmePort(guest, 1, guest.address, 4420);
    await createNvmePort(guest, 2, guest.address, 4421);
    paths = [await createBackingFile(guest, 'one', 320 * mib), await createBackingFile(guest, 'two', 64 * mib)];
    await createNvmeSubsystem(guest, { nqn, ports: [1, 2], namespaces: { 1: paths[0] ?? '', 2: paths[1] ?? '' } });
    server = await startSwitchboard(guest);
  });
  afterEach(() => assertNothingLeft(guest, server));
  after(() => guest?.down());

  const transports = 'tcp://10.0.2.15:4420,tcp://10.0.2.15:4421';
  const context = { node_attach_driver: 'nvmeof', nqn, nsid: '1', transports };
  const connections = async () => (await guest.run('ls /sys/class/nvme')).split('\n').filter(Boolean).length;

  test('one connection, where nothing would join two', async () => {
    const one = nodeVolume(() => server, { id: 'one', context });
    await one.stage();
    await one.stage();
    assert.equal(await connections(), 1);
    // An administrator makes another one.
    await guest.run(`nvme connect -t tcp -a ${guest.address} -s 4421 -n ${nqn}; udevadm settle`);
    await assert.rejects(one.stage(), { code: 'FAILED_PRECONDITION', message: /nothing joins/ });
    await one.unstage();
  });

  test('all connections, where multipathd joins them', async () => {
    await guest.run(`modprobe dm_multipath
      printf 'defaults {\\n find_multipaths no\\n}\\nblacklist {\\n devnode "^ubd"\\n}\\n' >/etc/multipath.conf
      multipathd; until multipathd show daemon | grep -q idle; do sleep 0.1; done`);
    const path = paths[0] ?? '';
    const grow = async () => {
      await growBacking(guest, path, 640 * mib);
      await resizeNamespace(guest, nqn, 1);
    };
    const two = nodeVolume(() => server, { id: 'two', context: { ...context, nsid: '2' } });
    await two.stage();
    assert.equal(await connections(), 2);
    assert.match(await guest.run(`findmnt -no SOURCE ${two.staging}`), /^\/dev\/mapper\//);
    await guest.run(
      `echo kept >${two.staging}/file; sync; echo 1 >$(ls -d /sys/class/nvme/nvme* | head -n 1)/reset_controller`,
    );
    await two.stage();
    assert.equal(await guest.run(`cat ${two.staging}/file`), 'kept\n');
    await two.unstage();
    await lifecycle(guest, server, { id: 'one', context, grow: { toBytes: 640 * mib, grow } });
    assert.equal(await guest.run('dmsetup ls --target multipath'), 'No devices found\n');
  });
});
