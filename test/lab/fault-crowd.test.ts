/** A hundred volumes at once, of three protocols, that come and go, twice. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CallError } from '../../src/core/errors.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { nodeVolume, type VolumeFacts } from './node-volume.ts';
import { createIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { createNvmePort, createNvmeSubsystem, startNvmeHost } from './services/nvme-subsystem.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const iqn = 'iqn.2026-01.org.lab:crowd';
const nqn = 'nqn.2026-01.org.lab:crowd';
const count = { nfs: 60, iscsi: 20, nvmeof: 20 };
const numbers = (length: number) => Array.from({ length }, (_, index) => index);

/** As orchestrators do it: a machine that is this busy may take a target that is slow for one that is away. */
async function persistently(call: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CallError && error.code === 'UNAVAILABLE') || attempt === 10) throw error;
    }
  }
}

describe('a hundred volumes', { skip: noGuests, timeout: 400_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('crowd');
    await guest.run(`set -e; mkdir -p /srv/luns /srv/nfs; cd /srv/luns
      for n in {0..${count.iscsi - 1}}; do truncate -s 16M lun$n; done
      for n in {0..${count.nvmeof - 1}}; do truncate -s 16M namespace$n; done
      cd /srv/nfs; mkdir -p {0..${count.nfs - 1}}`);
    await startNfsServer(guest);
    await exportFolder(guest, '/srv/nfs');
    await startInitiator(guest);
    await startNvmeHost(guest);
    const luns = Object.fromEntries(numbers(count.iscsi).map((n) => [n, `/srv/luns/lun${n}`]));
    const namespaces = Object.fromEntries(numbers(count.nvmeof).map((n) => [n + 1, `/srv/luns/namespace${n}`]));
    await createIscsiTarget(guest, { iqn, portals: [`${guest.address}:3260`], luns });
    await createNvmePort(guest, 1, guest.address, 4420);
    await createNvmeSubsystem(guest, { nqn, ports: [1], namespaces });
    server = await startSwitchboard(guest);
  });
  after(() => guest?.down());

  const all = (): VolumeFacts[] => [
    ...numbers(count.nfs).map((n) => ({
      id: `nfs-${n}`,
      context: { node_attach_driver: 'nfs', server: guest.address, share: `/srv/nfs/${n}` },
    })),
    ...numbers(count.iscsi).map((n) => ({
      id: `lun-${n}`,
      access: 'ext4',
      context: { node_attach_driver: 'iscsi', portal: guest.address, iqn, lun: String(n) },
    })),
    ...numbers(count.nvmeof).map((n) => ({
      id: `namespace-${n}`,
      access: 'ext4',
      context: { node_attach_driver: 'nvmeof', transport: `tcp://${guest.address}`, nqn, nsid: String(n + 1) },
    })),
  ];

  test('are staged and unstaged at once, each with its own data', async () => {
    const volumes = all().map((facts) => {
      const { stage, unstage, staging } = nodeVolume(() => server, facts);
      const limit = 200_000;
      return {
        id: facts.id,
        staging,
        stage: () => persistently(() => stage(limit)),
        unstage: () => persistently(() => unstage(limit)),
      };
    });
    await Promise.all(volumes.map((one) => one.stage()));
    await guest.run(volumes.map(({ id, staging }) => `echo ${id} >${staging}/name`).join('\n'));
    await Promise.all(volumes.map((one) => one.unstage()));
    await assertNothingLeft(guest, server);
    // While half of them go, the others come.
    const [first, second] = [volumes.filter((_, n) => n % 2 === 0), volumes.filter((_, n) => n % 2 === 1)];
    await Promise.all(first.map((one) => one.stage()));
    await Promise.all([...first.map((one) => one.unstage()), ...second.map((one) => one.stage())]);
    await Promise.all(first.map((one) => one.stage()));
    const found = await guest.run(volumes.map(({ staging }) => `cat ${staging}/name`).join('\n'));
    assert.deepEqual(
      found.trim().split('\n'),
      volumes.map(({ id }) => id),
    );
    await Promise.all(volumes.map((one) => one.unstage()));
    await assertNothingLeft(guest, server);
  });
});
