/** Namespaces of a real NVMe-oF target over TCP, as a node has them. */
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { lifecycle } from './lifecycle.ts';
import { createBackingFile, createPool, createZvol, growBacking, removeBacking } from './services/backing.ts';
import {
  createNvmePort,
  createNvmeSubsystem,
  removeNvmeSubsystem,
  resizeNamespace,
  startNvmeHost,
} from './services/nvme-subsystem.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const both = 'tcp://10.0.2.15:4420,tcp://10.0.2.15:4421';

interface Row {
  readonly on: 'zvol' | 'file';
  readonly access: 'ext4' | 'xfs' | 'btrfs' | 'block';
  readonly told?: Readonly<Record<string, string>>;
  readonly nsid?: number;
}

const rows: readonly Row[] = [
  { on: 'zvol', access: 'ext4' },
  { on: 'zvol', access: 'xfs', told: { transport: 'tcp://10.0.2.15:4420' } },
  { on: 'zvol', access: 'btrfs', nsid: 3 },
  { on: 'zvol', access: 'block', told: { transport: 'tcp://[fd00::15]:4422?ctrl-loss-tmo=30' } },
  { on: 'file', access: 'ext4', told: { transport: 'tcp://10.0.2.15' } },
  { on: 'file', access: 'xfs', nsid: 300 },
  { on: 'file', access: 'btrfs', told: { transports: 'tcp://10.0.2.15:9,tcp://10.0.2.15:4421' } },
  { on: 'file', access: 'block' },
];

describe('NVMe over TCP', { skip: noGuests, timeout: 300_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('nvmeof');
    await createPool(guest);
    await startNvmeHost(guest);
    await createNvmePort(guest, 1, guest.address, 4420);
    await createNvmePort(guest, 2, guest.address, 4421);
    await createNvmePort(guest, 3, guest.addressV6, 4422);
    server = await startSwitchboard(guest);
  });
  after(() => guest?.down());

  for (const [index, { on, access, told = { transports: both }, nsid = 1 }] of rows.entries()) {
    test(`${access} on a ${on}, ${Object.values(told)[0]}, NSID ${nsid}`, async () => {
      const id = `namespace-${index}`;
      const nqn = `nqn.2026-01.org.lab:${id}`;
      const bytes = 320 * mib;
      const path = await (on === 'zvol' ? createZvol : createBackingFile)(guest, id, bytes);
      await createNvmeSubsystem(guest, { nqn, ports: [1, 2, 3], namespaces: { [nsid]: path } });
      const grow = async () => {
        await growBacking(guest, path, 2 * bytes);
        await resizeNamespace(guest, nqn, nsid);
      };
      const context = { node_attach_driver: 'nvmeof', nqn, nsid: String(nsid), ...told };
      await lifecycle(guest, server, { id, context, access, grow: { toBytes: 2 * bytes, grow } });
      await removeNvmeSubsystem(guest, { nqn });
      await removeBacking(guest, path);
    });
  }
});
