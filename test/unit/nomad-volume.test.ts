import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assert as check, property, string } from 'fast-check';
import { hclString } from '../../src/cli/ctl/nomad-hcl.ts';
import { type NomadVolume, nomadPayload, nomadVolumeFile } from '../../src/cli/ctl/nomad-volume.ts';
import { decodeName, encodeName } from '../../src/drivers/common/volume-id.ts';
import { parseHcl } from './hcl.ts';

const plain: NomadVolume = {
  id: 'web[0]',
  name: 'web[0]',
  pluginId: 'org.example',
  accessMode: 'single-node-writer',
  attachmentMode: 'file-system',
  mountFlags: [],
  parameters: {},
  secrets: [],
  required: [],
  preferred: [],
};

test('no text is read as an interpolation, and any text can be read back', () => {
  assert.equal(hclString('a ${b} "%{if c}" \\'), '"a \\u0024{b} \\"\\u0025{if c}\\" \\\\"');
  assert.equal(hclString('$1 100% größe\n'), '"$1 100% größe\\n"');
  assert.equal(hclString('$${x}'), '"$\\u0024{x}"');
  check(
    property(string({ unit: 'binary' }), (text) => {
      const written = hclString(text);
      assert.ok(!/[$%]\{|\n/.test(written));
      assert.equal(parseHcl(`x = ${written}\n`).attributes.x, text);
    }),
    { numRuns: 300 },
  );
});

describe('a volume file', () => {
  test('of a volume that is to be made', () => {
    const file = nomadVolumeFile({
      ...plain,
      namespace: 'apps',
      capacityMin: 10 * 2 ** 30,
      capacityMax: 1e10 + 1,
      fsType: 'ext4',
      mountFlags: ['noatime'],
      parameters: { connection: 'fast' },
      snapshotId: 's:fast/one',
      required: [{ 'example.org/rack': 'r1' }, { 'example.org/rack': 'r2' }],
      preferred: [{ 'example.org/rack': 'r2' }],
    });
    const topology = (rack: string) => ({
      type: 'topology',
      labels: [],
      attributes: {},
      blocks: [{ type: 'segments', labels: [], attributes: { 'example.org/rack': rack }, blocks: [] }],
    });
    const block = (type: string, attributes: object, blocks: readonly object[] = []) => ({
      type,
      labels: [],
      attributes,
      blocks,
    });
    assert.match(file, /^# nomad volume create FILE\n/);
    assert.deepEqual(parseHcl(file), {
      attributes: {
        id: 'web[0]',
        name: 'web[0]',
        type: 'csi',
        namespace: 'apps',
        plugin_id: 'org.example',
        snapshot_id: 's:fast/one',
        capacity_min: '10GiB',
        capacity_max: '10000000001',
      },
      blocks: [
        block('capability', { access_mode: 'single-node-writer', attachment_mode: 'file-system' }),
        block('mount_options', { fs_type: 'ext4', mount_flags: ['noatime'] }),
        block('topology_request', {}, [
          block('required', {}, [topology('r1'), topology('r2')]),
          block('preferred', {}, [topology('r2')]),
        ]),
        block('parameters', { connection: 'fast' }),
      ],
    });
  });

  test('of a volume that is there says what it is, and leaves secrets to be filled in', () => {
    const made = { externalId: 'v:fast/web.5b0.5d', context: { path: '/srv/${x}' }, capacity: 512 };
    const volume = { ...plain, capacityMin: 512, secrets: ['password'], made };
    const file = nomadVolumeFile(volume);
    const { attributes, blocks } = parseHcl(file);
    assert.match(file, /^# nomad volume register FILE\n/);
    assert.deepEqual([attributes.external_id, attributes.capacity_min], ['v:fast/web.5b0.5d', '512']);
    assert.deepEqual(blocks.find(({ type }) => type === 'context')?.attributes, { path: '/srv/${x}' });
    assert.match(file, /^# secrets \{\n# {3}"password" = "…"\n# \}\n$/m);
    assert.deepEqual(nomadPayload([volume]), {
      Volumes: [
        {
          ID: 'web[0]',
          Name: 'web[0]',
          PluginID: 'org.example',
          ExternalID: 'v:fast/web.5b0.5d',
          Capacity: 512,
          RequestedCapacityMin: 512,
          RequestedCapabilities: [{ AccessMode: 'single-node-writer', AttachmentMode: 'file-system' }],
          Parameters: {},
          Context: { path: '/srv/${x}' },
        },
      ],
    });
  });
});

test('a name can be read back from the id that it was made into, and from no other', () => {
  assert.equal(decodeName('web.5b0.5d'), 'web[0]');
  for (const id of ['web.5B0.5D', 'web.61', 'a.ff', '', 'a/b', 'a.5', 'a.1b'])
    assert.equal(decodeName(id), undefined, id);
  check(
    property(string({ minLength: 1, maxLength: 20, unit: 'grapheme' }), (name) => {
      assert.equal(decodeName(encodeName(name)), encodeName(name).length > 128 ? undefined : name);
    }),
    { numRuns: 300 },
  );
});
