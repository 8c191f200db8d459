/** Large copies that are interrupted in the middle, again and again, by everything that can end: each time they go on from there. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type ControllerClient, controllerClient } from './controller.ts';
import { boot, type Guest } from './guest.ts';
import { noGuests } from './lab-files.ts';
import {
  beginGate,
  closeGate,
  copyIsOver,
  copyWaits,
  gateBytes,
  gatedZfs,
  installGate,
  openGate,
  sendings,
} from './services/gated-receive.ts';
import { type NasDriver, nasConnection, startZfsNas, storedThings } from './services/zfs-nas.ts';
import { type Switchboard, startSwitchboard } from './switchboard.ts';

const mib = 2 ** 20;
const dataBytes = 256 * mib;
const snapshots = { detachedVolumesFromSnapshots: 'true' };
const volumes = { detachedVolumesFromVolumes: 'true' };
const detached = { detachedSnapshots: 'true' };

interface Failure extends Error {
  readonly code: string;
}

describe('large copies that are interrupted', { skip: noGuests, timeout: 1_190_000 }, () => {
  let guest: Guest;
  let server: Switchboard;
  before(async () => {
    guest = await boot('zfscopy', { disks: [6 * 1024 * mib] });
    await startZfsNas(guest);
    await installGate(guest);
    await startSshd();
  });
  after(() => guest?.down());

  const startSshd = () => guest.run('/usr/sbin/sshd -p 2222 -o PidFile=/run/sshd2.pid');
  const start = async (driver: NasDriver) => {
    const zfs = [`cli: { paths: { zfs: ${gatedZfs} } }`];
    server = await startSwitchboard(guest, { config: nasConnection(guest, driver, { port: 2222, zfs }) });
  };
  const dataOf = (driver: NasDriver, id: string) =>
    driver === 'nfs' ? `/tank/nfs/v/${id}/data` : `/dev/zvol/tank/${driver}/v/${id}`;
  const write = async (driver: NasDriver, id: string) => {
    const options = driver === 'nfs' ? '' : 'oflag=direct';
    await guest.run(`udevadm settle
      dd if=/dev/urandom of=${dataOf(driver, id)} bs=1M count=${dataBytes / mib} conv=fsync status=none ${options}`);
  };
  const sumOf = async (driver: NasDriver, id: string) => {
    const data = dataOf(driver, id);
    const read = `udevadm settle; head -c ${dataBytes} ${data} | sha256sum`;
    return (await guest.run(read, { timeoutMs: 120_000 })).split(' ')[0];
  };

  /** What ends in the middle, and what the caller is told. */
  const interruptions: Readonly<
    Record<string, { readonly end: () => Promise<unknown>; readonly told: (error: Failure) => void }>
  > = {
    server: {
      end: () => server.kill(),
      told: ({ code }) => assert.equal(code, 'UNAVAILABLE'),
    },
    'SSH server': {
      async end() {
        await guest.run(
          `kill -9 $(cat /run/sshd2.pid) $(ss -tnpH 'sport = :2222' | grep -o 'pid=[0-9]*' | cut -d= -f2)`,
        );
        await startSshd();
      },
      told({ code, message }) {
        assert.equal(code, 'UNAVAILABLE', message);
        assert.match(message, /connection was lost/);
      },
    },
    receiver: {
      end: () => guest.run(`pkill -KILL -f '^/sbin/[z]fs receive '`),
      told({ code, message }) {
        assert.equal(code, 'UNAVAILABLE', message);
        assert.match(message, /it goes on from there when it is asked for again/);
      },
    },
  };

  /** Makes a copy that is interrupted by each of these, and looks at how much was sent. */
  async function interrupted(
    driver: NasDriver,
    by: readonly string[],
    work: string,
    copy: () => Promise<unknown>,
    meanwhile: () => Promise<void>,
  ): Promise<void> {
    await beginGate(guest);
    for (const name of by) {
      const interruption = interruptions[name];
      assert.ok(interruption);
      await closeGate(guest);
      const refused = assert.rejects(copy(), (error: Failure) => {
        interruption.told(error);
        return true;
      });
      await copyWaits(guest);
      await interruption.end();
      await refused;
      await copyIsOver(guest);
      const token = await guest.run(
        `zfs get -H -o value -t filesystem,volume receive_resume_token $(zfs list -H -o name -r tank | grep -x '${work}:[0-9]*')`,
      );
      assert.match(token, /^1-/);
      if (name === 'server') await start(driver);
      await meanwhile();
    }
  }

  async function completed(copy: () => Promise<unknown>, interruptions: number): Promise<void> {
    await openGate(guest);
    await again(copy);
    const { sends, bytes } = await sendings(guest);
    assert.equal(sends.length, interruptions + 1);
    for (const resumed of sends.slice(1)) assert.match(resumed, / -t 1-/);
    // What had been on its way is sent again: less than half of what a beginning from zero would send again.
    const twice = bytes - dataBytes;
    assert.ok(twice < (interruptions * gateBytes) / 2, `${bytes} bytes were sent, of ${dataBytes}`);
  }

  /** A host that was gone is tried again after a pause. */
  async function again<T>(call: () => Promise<T>): Promise<T> {
    for (const giveUp = Date.now() + 120_000; ; ) {
      try {
        return await call();
      } catch (error) {
        if ((error as Failure).code !== 'UNAVAILABLE' || Date.now() > giveUp) throw error;
      }
    }
  }

  const ids = async ({ list }: ControllerClient) => (await list()).map(({ volume }) => volume?.volumeId);

  for (const driver of ['nfs', 'iscsi'] as const) {
    test(`a copy of a volume and a detached snapshot: ${driver}`, async () => {
      await start(driver);
      const storage = controllerClient(() => server, { timeoutMs: 240_000 });
      const root = `tank/${driver}`;
      await storage.create('source', { bytes: 512 * mib });
      await write(driver, 'source');
      const then = await sumOf(driver, 'source');
      let changes = 0;
      const change = async () => {
        // The copy is of the time at which it was first asked for.
        await guest.run(`printf ${++changes} | dd of=${dataOf(driver, 'source')} conv=notrunc,fsync status=none`);
        assert.deepEqual(await again(() => ids(storage)), ['source']);
        assert.deepEqual(await again(() => storage.snapshots('source')), []);
      };
      const by = Object.keys(interruptions);

      const copy = () => storage.create('copy', { bytes: 512 * mib, volume: 'source', parameters: volumes });
      await interrupted(driver, by, `${root}/v/copy:copy`, copy, change);
      await completed(copy, by.length);
      assert.equal(await sumOf(driver, 'copy'), then);

      const now = await sumOf(driver, 'source');
      assert.notEqual(now, then);
      const shoot = () => storage.snapshot('source', 'whole', detached);
      await interrupted(driver, by, `${root}/s/copy:source:whole`, shoot, async () => {});
      await completed(shoot, by.length);
      await guest.run(`printf last | dd of=${dataOf(driver, 'source')} conv=notrunc,fsync status=none`);
      await storage.create('restored', { bytes: 512 * mib, snapshot: 'source/whole' });
      assert.equal(await sumOf(driver, 'restored'), now);

      for (const id of ['restored', 'copy', 'source']) await storage.remove(id);
      await storage.removeSnapshot('source/whole');
      assert.deepEqual(await storedThings(guest), []);
      assert.equal(await server.stop(), 0);
    });
  }

  test('what nobody asks for again is gone when it is deleted', async () => {
    await start('nfs');
    const storage = controllerClient(() => server, { timeoutMs: 240_000 });
    await storage.create('source', { bytes: 512 * mib });
    await write('nfs', 'source');
    await storage.snapshot('source', 'snap');
    const before = await storedThings(guest);
    const nothing = async () => {};

    const copy = () => storage.create('copy', { bytes: 512 * mib, snapshot: 'source@snap', parameters: snapshots });
    await interrupted('nfs', ['server'], 'tank/nfs/v/copy:copy', copy, nothing);
    await storage.remove('copy');
    assert.deepEqual(await storedThings(guest), before);

    const shoot = () => storage.snapshot('source', 'whole', detached);
    await interrupted('nfs', ['server'], 'tank/nfs/s/copy:source:whole', shoot, nothing);
    await storage.removeSnapshot('source/whole');
    assert.deepEqual(await storedThings(guest), before);

    await storage.removeSnapshot('source@snap');
    await storage.remove('source');
    assert.deepEqual(await storedThings(guest), []);
    assert.equal(await server.stop(), 0);
  });

  test('a controller that runs ZFS itself leaves it running when it is killed, and its successor waits for that', async () => {
    await start('zvol');
    const storage = controllerClient(() => server, { timeoutMs: 240_000 });
    await storage.create('source', { bytes: 512 * mib });
    await write('zvol', 'source');
    const then = await sumOf('zvol', 'source');
    await beginGate(guest);
    await closeGate(guest);
    const copy = () => storage.create('copy', { bytes: 512 * mib, volume: 'source', parameters: volumes });
    const refused = assert.rejects(copy(), { code: 'UNAVAILABLE' });
    await copyWaits(guest);
    await server.kill();
    await refused;
    await start('zvol');
    await assert.rejects(copy(), { code: 'UNAVAILABLE', message: /partially-complete state|is busy/ });
    await openGate(guest);
    await copyIsOver(guest);
    await again(copy);
    assert.equal(await sumOf('zvol', 'copy'), then);
    for (const id of ['copy', 'source']) await storage.remove(id);
    assert.deepEqual(await storedThings(guest), []);
    assert.equal(await server.stop(), 0);
  });
});
