import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { inlineProperties } from '../../src/drivers/zfs-local-ephemeral-inline/inline-properties.ts';
import type { Connections } from '../../src/proxy/connections.ts';
import { inlineHandle } from '../../src/proxy/inline-volumes.ts';

const call = detachedContext(silentLogger);
const id = `csi-${'0123456789abcdef'.repeat(4)}`;

function connections(
  owners: Readonly<Record<string, (() => boolean) | undefined>>,
): Connections & { released: number } {
  const stand = {
    released: 0,
    names: async () => Object.keys(owners),
    find: async (_call: unknown, name: string) => {
      const owns = owners[name];
      return {
        connection: { driver: { node: owns && { owns: async () => owns() } } },
        release: () => void stand.released++,
      };
    },
  };
  return stand as unknown as Connections & { released: number };
}

test('an inline volume is published by the connection that its attributes name', async () => {
  const some = connections({});
  const context = { connection: 'inline' };
  assert.deepEqual(await inlineHandle(call, some, { volumeId: id, context }), { connection: 'inline', id });
  assert.equal(await inlineHandle(call, some, { volumeId: id, context: {} }), undefined);
  assert.equal(await inlineHandle(call, some, { volumeId: id, context: { connection: '../x' } }), undefined);
  assert.equal(await inlineHandle(call, some, { volumeId: 'pvc-1', context }), undefined);
});

test('what comes without attributes is its connection’s that knows it, and one that cannot tell is passed over', async () => {
  const broken = () => {
    throw new CallError('UNAVAILABLE', 'gone');
  };
  const some = connections({ a: undefined, b: broken, c: () => false, d: () => true });
  assert.deepEqual(await inlineHandle(call, some, { volumeId: id }), { connection: 'd', id });
  assert.equal(some.released, 4);
  assert.equal(await inlineHandle(call, connections({ a: () => false }), { volumeId: id }), undefined);
  const never = connections({
    a: () => assert.fail('ids of other kinds need not be asked about'),
  });
  assert.equal(await inlineHandle(call, never, { volumeId: 'pvc-1' }), undefined);
});

test('a pod sets the properties that it may', () => {
  const configured = {
    refquota: { value: '1G', allowOverride: true },
    compression: { value: 'lz4', allowOverride: false },
    exec: { value: 'on', allowOverride: true },
  };
  assert.deepEqual(
    inlineProperties({ 'property.refquota': '5G', 'property.compression': 'off', other: 'x' }, configured),
    {
      refquota: '5G',
      compression: 'lz4',
      exec: 'on',
    },
  );
  assert.equal(inlineProperties({ 'property.exec': 'off', 'property.atime': 'off' }, configured).exec, 'off');
  for (const name of ['mountpoint', 'canmount', 'sharenfs', 'setuid', 'democratic-csi:managed_resource', 'a b', '-o']) {
    assert.throws(
      () => inlineProperties({ [`property.${name}`]: 'x' }, configured),
      (error) => error instanceof CallError && error.code === 'INVALID_ARGUMENT',
      name,
    );
  }
});
