/** A host of ZFS that loses its power, between calls and in the middle of them. The controller and the node are another machine. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type * as csi from '../../src/generated/csi.js';
import { controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import { assertNothingLeft } from './leftovers.ts';
import { type Network, openNetwork } from './network.ts';
import { startInitiator } from './services/iscsi-target.ts';
import { startNvmeHost } from './services/nvme-subsystem.ts';
import { installStops, stopAfter, stopped, stoppingSudo } from './services/stopping-commands.ts';
import {
  installSaveSubsystems,
  nasConnection,
  nasKey,
  resumeZfsNas,
  saveSubsystems,
  startZfsNas,
  storedThings,
} from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const drivers = ['nfs', 'iscsi', 'nvmeof'] as const;
const fsTypes = { nfs: 'nfs', iscsi: 'ext4', nvmeof: 'ext4' } as const;

describe('a host of ZFS that loses its power', { skip: noGuests, timeout: 1_190_000 }, () => {
  let network: Network;
  let nas: Guest;
  let near: Guest;
  let server: Switchboard;
  before(async () => {
    network = await openNetwork();
    [nas, near] = await Promise.all([boot('zfspower', { network }), boot('zfsnear', { network, memory: 1024 })]);
    await startZfsNas(nas);
    await installSaveSubsystems(nas);
    await installStops(nas, drivers);
    await nas.run('sync');
    await startInitiator(near);
    await startNvmeHost(near);
    await near.run('mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs; rpcbind -w; rpc.statd --no-notify');
    await near.run(`cat >${nasKey} && chmod 0600 ${nasKey}`, { input: await nas.run(`cat ${nasKey}`) });
    const connections = drivers.map((driver) => {
      const zfs = [`cli: { sudoEnabled: true, paths: { sudo: ${stoppingSudo(driver)} } }`];
      return [`connections/${driver}.yaml`, nasConnection(nas, driver, { saveCommand: saveSubsystems, zfs })];
    });
    const config = 'driver: proxy\nproxy:\n  configFolder: /run/switchboard/main/connections\n';
    server = await startSwitchboard(near, { config, files: Object.fromEntries(connections) });
  });
  after(async () => {
    await Promise.all([nas?.down(), near?.down()]);
    await network?.close();
  });

  const clientOf = (driver: (typeof drivers)[number]) =>
    controllerClient(() => server, { connection: driver, access: fsTypes[driver] });
  /** Its own file system has no journal, and is whole once it is frozen. What ZFS has not written is lost. */
  const powerCut = async () => {
    await nas.run('fsfreeze --freeze /');
    await nas.kill();
    await nas.reboot();
    await resumeZfsNas(nas);
  };
  /** What the host is asked is refused for as long as it is away. */
  async function again<T>(call: () => Promise<T>): Promise<T> {
    for (const giveUp = Date.now() + 120_000; ; await setTimeout(200)) {
      try {
        return await call();
      } catch (error) {
        const code = (error as { readonly code?: string }).code;
        if (code !== 'UNAVAILABLE' || Date.now() > giveUp) throw error;
      }
    }
  }

  test('volumes, snapshots and shares are what they were, and go on', async () => {
    const given = await Promise.all(
      drivers.map(async (driver) => {
        const storage = clientOf(driver);
        const volume = await storage.create('first');
        const node = storage.onNode(volume);
        await node.stage();
        await node.publish('rw');
        await near.run(`echo then >${node.target('rw')}/data && sync -f ${node.target('rw')}/data`);
        const snapshot = await storage.snapshot(volume.volumeId, 'snap');
        const whole = await storage.snapshot(volume.volumeId, 'whole', { detachedSnapshots: 'true' });
        await near.run(`echo now >${node.target('rw')}/data && sync -f ${node.target('rw')}/data`);
        return { driver, storage, volume, node, snapshot, whole };
      }),
    );
    // The power goes right after the answer.
    await nas.run('echo 600 >/sys/module/zfs/parameters/zfs_txg_timeout');
    const last: (csi.Volume | undefined)[] = [];
    // The file system last: nothing that comes after it makes ZFS write what it was given.
    for (const [index, { storage }] of [...given.entries()].reverse()) last[index] = await storage.create('last');
    await powerCut();
    assert.equal(await nas.run('stat -c %a /tank/nfs/v/first /tank/nfs/v/last'), '777\n777\n');

    for (const [index, { driver, storage, volume, node, snapshot, whole }] of given.entries()) {
      const { volumeId } = volume;
      const listed = (await again(() => storage.list())).filter((entry) => entry.volume?.volumeId.includes(driver));
      assert.deepEqual(
        listed.map((entry) => entry.volume),
        [volume, last[index]],
      );
      assert.deepEqual(
        listed.map(({ status }) => status?.volumeCondition?.abnormal),
        [false, false],
      );
      assert.deepEqual(await storage.create('first'), volume);
      assert.deepEqual(await storage.create('last'), last[index]);
      assert.deepEqual(await storage.snapshot(volumeId, 'snap'), snapshot);
      assert.deepEqual(await storage.snapshot(volumeId, 'whole', { detachedSnapshots: 'true' }), whole);
      // As it was staged before, and with what had been written: not what this machine remembers of it.
      const read = `echo 3 >/proc/sys/vm/drop_caches; cat ${node.target('rw')}/data`;
      assert.equal(await near.run(read, { timeoutMs: 120_000 }), 'now\n');
      const grown = await storage.expand(volumeId, 128 * mib);
      if (grown.nodeExpansionRequired) await node.expand(128 * mib);
      assert.ok((await node.stats('rw')).totalBytes > 100 * mib);
      await near.run(`echo later >${node.target('rw')}/data && sync -f ${node.target('rw')}/data`);
      const made = [
        [await storage.create('restored', { snapshot: snapshot.snapshotId }), 'then\n'],
        [await storage.create('revived', { snapshot: whole.snapshotId }), 'then\n'],
        [await storage.create('cloned', { volume: volumeId, bytes: 128 * mib }), 'later\n'],
      ] as const;
      await node.unpublish('rw');
      await node.unstage();
      for (const [one, text] of [...made, [volume, 'later\n'] as const]) {
        const other = storage.onNode(one);
        await other.stage();
        await other.publish('r');
        assert.equal(await near.run(`cat ${other.target('r')}/data`), text, one.volumeId);
        await other.unpublish('r');
        await other.unstage();
      }
      await storage.removeSnapshot(snapshot.snapshotId);
      for (const [one] of made) await storage.remove(one.volumeId);
      await storage.removeSnapshot(whole.snapshotId);
      for (const one of [volume, last[index]]) await storage.remove(one?.volumeId ?? '');
    }
    assert.equal(await nas.run('find /tank/nfs -mindepth 2'), '');
    await assertNothingLeft(near, server);
    assert.deepEqual(await storedThings(nas), []);
  });

  test('a volume that was half made is completed', async (t) => {
    let rounds = 0;
    for (let commands = 1, areStopped = true; areStopped; commands++) {
      await stopAfter(nas, drivers, commands);
      const settled = new Set<string>();
      const calls = drivers.map(async (driver) => {
        const result = await clientOf(driver)
          .create('half')
          .catch((error: Error & { readonly code: string }) => error);
        settled.add(driver);
        return result;
      });
      let seen = await stopped(nas);
      while (drivers.some((driver) => !settled.has(driver) && !seen.names.has(driver))) {
        await setTimeout(50);
        seen = await stopped(nas);
      }
      areStopped = drivers.some((driver) => seen.names.has(driver));
      await powerCut();
      for (const [index, driver] of drivers.entries()) {
        const result = await calls[index];
        if (!seen.names.has(driver)) assert.ok(!(result instanceof Error), `${driver}: ${result}`);
        else assert.equal((result as { readonly code: string }).code, 'UNAVAILABLE', `${driver}: ${result}`);
      }
      try {
        await Promise.all(
          drivers.map(async (driver) => {
            const storage = clientOf(driver);
            const volume = await again(() => storage.create('half'));
            const { status } = await storage.get(volume.volumeId);
            assert.equal(status?.volumeCondition?.abnormal, false, status?.volumeCondition?.message);
            if (driver === 'nfs') {
              // What clients have used, the server of NFS holds for a while: it is looked at from here.
              assert.equal(await nas.run('stat -c %a /tank/nfs/v/half; exportfs -s | grep -c half'), '777\n1\n');
            } else {
              const node = storage.onNode(volume);
              await node.stage();
              await node.unstage();
            }
            await storage.remove(volume.volumeId);
          }),
        );
        assert.deepEqual(await storedThings(nas), []);
      } catch (error) {
        throw new Error(`without power after ${commands} of\n${seen.commands}`, { cause: error });
      }
      rounds++;
    }
    await assertNothingLeft(near, server);
    t.diagnostic(`${rounds} rounds`);
  });
});
