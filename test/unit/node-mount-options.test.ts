import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bindOptions, mismatch, restrictionsOf, splitFlags } from '../../src/node/mount-options.ts';
import { nodeSecret } from '../../src/node/node-secret.ts';
import { checkedPath } from '../../src/node/paths.ts';

test('flags are separated at commas that are not within quotes', () => {
  assert.deepEqual(splitFlags(['a,b', ' c ', '', 'defaults', 'context="system_u:s0:c1,c2",ro']), [
    'a',
    'b',
    'c',
    'context="system_u:s0:c1,c2"',
    'ro',
  ]);
});

test('flags that would do something else than mount the volume are refused', () => {
  for (const flag of [
    'remount',
    'bind',
    'rbind',
    'move',
    'shared',
    'rslave',
    'X-mount.subdir=x',
    'loop',
    'ro,remount',
  ]) {
    assert.throws(() => splitFlags([flag]), { code: 'INVALID_ARGUMENT' }, flag);
  }
});

test('the later of two flags that contradict each other wins', () => {
  assert.deepEqual([...restrictionsOf(['ro', 'rw', 'noexec', 'vers=4', 'exec', 'nosuid'])], ['nosuid']);
});

test('a plain bind names no options, so that all are inherited', () => {
  assert.deepEqual(bindOptions({ options: ['ro', 'nosuid', 'noatime'] }, ['discard'], false), ['bind']);
});

const option = fc.constantFrom('ro', 'rw', 'nosuid', 'nodev', 'noexec', 'noatime', 'relatime', 'vers=4', 'sync');
const options = fc.array(option, { maxLength: 5 });

test('a mount made with its options fits the request that it was made for', () => {
  fc.assert(
    fc.property(options, options, fc.boolean(), (inherited, flags, readonly) => {
      const made = bindOptions({ options: inherited }, flags, readonly);
      const mount = { options: made.length > 1 ? made.slice(1) : inherited };
      assert.equal(mismatch(mount, { flags, readonly, inherited }), undefined);
      if (readonly) assert.ok(made.includes('ro'));
    }),
    { numRuns: 300 },
  );
});

test('a mount that is writable never fits a request to read only, nor the other way round', () => {
  const wanted = { flags: [], readonly: true };
  assert.equal(mismatch({ options: ['rw'] }, wanted), 'it is writable');
  assert.equal(mismatch({ options: ['ro'] }, { ...wanted, readonly: false }), 'it is read-only');
  assert.equal(mismatch({ options: ['ro'] }, { ...wanted, readonly: false, inherited: ['ro'] }), undefined);
});

test('a checked path is absolute and has no way up, whatever comes in', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, slash) => {
      let path: string;
      try {
        path = checkedPath(slash ? `/${text}` : text, 'target_path');
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'INVALID_ARGUMENT');
        return;
      }
      assert.ok(path.startsWith('/') && path.length > 1 && !path.includes('\0') && !path.includes('//'));
      assert.ok(!path.split('/').some((segment) => segment === '..' || segment === '.'));
    }),
    { numRuns: 300 },
  );
});

test('a secret named for the instance is preferred', () => {
  const context = { provisioner_driver: 'zfs-generic-nfs', provisioner_driver_instance_id: 'one' };
  const secrets = {
    key: '1',
    'democratic-csi.org/key': '2',
    'democratic-csi.org/zfs-generic-nfs/key': '3',
    'democratic-csi.org/one/key': '4',
  };
  assert.equal(nodeSecret(secrets, context, 'key'), '4');
  assert.equal(nodeSecret(secrets, { provisioner_driver: 'zfs-generic-nfs' }, 'key'), '3');
  assert.equal(nodeSecret(secrets, {}, 'key'), '2');
  assert.equal(nodeSecret({ key: '1' }, context, 'key'), '1');
  assert.equal(nodeSecret({}, context, 'toString'), undefined);
});
