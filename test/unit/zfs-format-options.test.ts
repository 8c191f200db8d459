import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VolumeSpec } from '../../src/core/volume.ts';
import { checkFormatOptions } from '../../src/drivers/zfs/check-format-options.ts';
import type { ZfsStore } from '../../src/drivers/zfs/store.ts';
import { userProperties } from '../../src/drivers/zfs/user-properties.ts';
import { volumeOf } from '../../src/drivers/zfs/volume-answer.ts';

const store = (kind: ZfsStore['kind']) => ({ kind, driver: 'zfs-generic-iscsi', options: {} }) as ZfsStore;

test('what a class says of making file systems reaches the nodes, with zvols alone', () => {
  const parameters = JSON.stringify({
    fsType: 'xfs',
    formatOptions: '-K',
    'democratic-csi.org/zfs-generic-iscsi/formatOptions': '-m reflink=0',
  });
  const properties = {
    [userProperties.parameters]: { value: parameters, source: 'local' as const },
    [userProperties.shareContext]: { value: '{"node_attach_driver":"iscsi"}', source: 'local' as const },
  };
  const contextOf = (kind: ZfsStore['kind'], more = properties as Partial<typeof properties>) =>
    volumeOf(store(kind), { name: 'tank/v/one', type: kind, properties: more as typeof properties }).context;
  assert.equal(contextOf('volume').formatOptions, '-m reflink=0');
  assert.equal(contextOf('filesystem').formatOptions, undefined);
  assert.deepEqual(Object.keys(contextOf('volume', {})), ['provisioner_driver']);
});

test('a volume that no node would format as its class says is not made', () => {
  const spec = (formatOptions: string, fsType: string) =>
    ({
      parameters: { formatOptions },
      capabilities: [
        { type: 'block', mode: 'SINGLE_NODE_WRITER' },
        { type: 'mount', mode: 'SINGLE_NODE_WRITER', fsType, mountFlags: [], mountGroup: '' },
      ],
    }) as unknown as VolumeSpec;
  checkFormatOptions(store('volume'), spec('-K', 'xfs'));
  checkFormatOptions(store('filesystem'), spec('anything', 'nfs'));
  assert.throws(() => checkFormatOptions(store('volume'), spec('-K', 'ext4')), { code: 'INVALID_ARGUMENT' });
});
