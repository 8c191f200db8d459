/** The server is killed after each program that it starts, in every call of a volume's life on a node; the same call gets on from there. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { nodeVolume, type VolumeFacts } from './node-volume.ts';
import { createBackingFile } from './services/backing.ts';
import { createIscsiTarget, startInitiator } from './services/iscsi-target.ts';
import { exportFolder, startNfsServer } from './services/nfs-server.ts';
import { createNvmePort, createNvmeSubsystem, startNvmeHost } from './services/nvme-subsystem.ts';
import { startSmbServer } from './services/smb-server.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const iqn = 'iqn.2026-01.org.lab:kill';
const nqn = 'nqn.2026-01.org.lab:kill';
const password = 'what clerks know';
const programs = [
  'mount',
  'umount',
  'iscsiadm',
  'nvme',
  'multipath',
  'multipathd',
  'udevadm',
  'blkid',
  'od',
  'mkfs.ext4',
  'e2fsck',
  // By these the kernel is told.
  'dd',
  'tee',
  'losetup',
  'mknod',
  'modprobe',
];

/** Stands in for each of the programs that change something, or come between those: runs it, and then kills the server if it is the one whose turn it is. */
const standIn = `#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
"\${0##*/}" "$@"
code=$?
turn=$(($(</run/steps/turn) - 1))
echo $turn >/run/steps/turn
[ $turn != 0 ] || kill -9 $(</run/switchboard/main/pid)
exit $code
`;

describe('killed after each program', { skip: noGuests, timeout: 1_200_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  const start = async () => {
    server = await startSwitchboard(guest, { env: { PATH: '/run/steps/bin:/usr/sbin:/usr/bin:/sbin:/bin' } });
  };

  before(async () => {
    guest = await boot('kill');
    await guest.run('mkdir -p /run/steps/bin; cat >/run/steps/stand-in; chmod +x /run/steps/stand-in', {
      input: standIn,
    });
    await guest.run(`echo 0 >/run/steps/turn; for name in ${programs.join(' ')}; do
      ln -s ../stand-in /run/steps/bin/$name; done`);
    await startSmbServer(guest, { files: '/srv/smb' }, { user: 'clerk', password });
    await startNfsServer(guest);
    await exportFolder(guest, '/srv/nfs');
    await startInitiator(guest);
    await startNvmeHost(guest);
    const [lun, namespace] = [
      await createBackingFile(guest, 'lun', 64 * 2 ** 20),
      await createBackingFile(guest, 'namespace', 64 * 2 ** 20),
    ];
    await createIscsiTarget(guest, { iqn, portals: [`${guest.address}:3260`], luns: { 0: lun } });
    await createNvmePort(guest, 1, guest.address, 4420);
    await createNvmeSubsystem(guest, { nqn, ports: [1], namespaces: { 1: namespace } });
    await start();
  });
  after(() => guest?.down());

  const kinds: Readonly<Record<string, () => VolumeFacts>> = {
    NFS: () => ({ id: 'nfs', context: { node_attach_driver: 'nfs', server: guest.address, share: '/srv/nfs' } }),
    SMB: () => ({
      id: 'smb',
      context: { node_attach_driver: 'smb', server: guest.address, share: 'files' },
      secrets: { mount_flags: `username=clerk,password=${password}` },
    }),
    iSCSI: () => ({
      id: 'lun',
      access: 'ext4',
      context: { node_attach_driver: 'iscsi', portal: guest.address, iqn, lun: '0' },
    }),
    'iSCSI, as a block device for reading': () => ({
      id: 'lun',
      access: 'block',
      context: { node_attach_driver: 'iscsi', portal: guest.address, iqn, lun: '0' },
    }),
    'NVMe over TCP': () => ({
      id: 'namespace',
      access: 'ext4',
      context: { node_attach_driver: 'nvmeof', transport: `tcp://${guest.address}`, nqn, nsid: '1' },
    }),
  };
  for (const [kind, facts] of Object.entries(kinds)) {
    test(kind, async () => {
      const { id, access } = facts();
      const readonly = access === 'block';
      const file = readonly ? '/block_device' : '/file';
      const volume = nodeVolume(() => server, facts());
      const calls = {
        stage: () => volume.stage(),
        publish: () => volume.publish('target', { readonly }),
        unpublish: () => volume.unpublish('target'),
        unstage: () => volume.unstage(),
      };
      const inOrder = Object.entries(calls);
      /** Makes the call, the server being killed after so many programs. False: it did not start as many. */
      const killedIn = async (call: () => Promise<void>, programsBefore: number) => {
        await guest.run(`echo ${programsBefore} >/run/steps/turn`);
        const failure = await call().then(
          () => undefined,
          (error: unknown) => error,
        );
        const { code } = await guest.attempt(`echo 0 >/run/steps/turn; kill -0 ${server.pid}`);
        if (code === 0) assert.equal(failure, undefined);
        return code !== 0;
      };
      for (const [name] of inOrder) {
        for (let turn = 1; ; turn++) {
          // What stage does to a blank device is worth more than what it does to one that has its file system.
          if (name === 'stage')
            await guest.run(
              `test ! -e /srv/luns/${id} || truncate -s 0 /srv/luns/${id}; truncate -s 64M /srv/luns/${id}`,
            );
          let killed = false;
          for (const [each, call] of inOrder) {
            if (each === name) killed = await killedIn(call, turn);
            if (killed && each === name) {
              await start();
              await call();
            } else if (each !== name) await call();
            const [written, published] = [volume.staging + file, volume.target('target') + (readonly ? '' : file)];
            if (each === 'stage') await guest.run(`echo ${turn} >${written}; sync ${written}`);
            if (each === 'publish') assert.equal(await guest.run(`head -n 1 ${published}`), `${turn}\n`);
          }
          await assertNothingLeft(guest, server);
          if (!killed) break;
        }
      }
    });
  }
});
