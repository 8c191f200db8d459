/** csi-sanity with one connection of a guest's ZFS. */
import assert from 'node:assert/strict';
import type { Guest } from './guest.ts';
import { runSanity } from './sanity.ts';
import { type NasDriver, smbSecrets } from './services/zfs-nas.ts';

/** Fails unless no spec does and most of them were there to be passed. `server` is the name of the one that answers. */
export async function assertSane(
  guest: Guest,
  driver: NasDriver,
  server: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<void> {
  const secrets = driver === 'smb' ? smbSecrets : {};
  const socket = `/run/switchboard/${server}/csi.sock`;
  const specs = await runSanity(guest, { socket, parameters, secrets, volumeBytes: 16 * 2 ** 20 });
  assert.deepEqual(
    specs.filter(({ state }) => state === 'failed').map((spec) => `${spec.name}: ${spec.message}`),
    [],
  );
  assert.ok(specs.filter(({ state }) => state === 'passed').length > 60);
}
