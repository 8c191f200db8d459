import assert from 'node:assert/strict';
import { test } from 'node:test';
import { smbShare } from '../../src/drivers/zfs/shares/by-property.ts';

test('the name that ZFS gives an SMB share', () => {
  const nameOf = (name: string) =>
    smbShare('nas', {}).byProperties?.({ name, type: 'filesystem', properties: {} })?.context.share;
  assert.equal(nameOf('tank/v/pvc-1'), 'tank_v_pvc_1');
  assert.equal(nameOf('tank/smb:x y/v/n-1'), 'tank_smb_x_y_v_n_1');
  assert.equal(nameOf('tank/v.1/a_b'), 'tank_v.1_a_b');
});
