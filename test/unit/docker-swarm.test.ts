/** SwarmKit's sequences, as they were seen on a real engine, against a driver that counts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nodeCapabilities } from '../../src/core/capabilities.ts';
import type { Driver } from '../../src/core/driver.ts';
import { CallError } from '../../src/core/errors.ts';
import type { MountCapability, Volume, VolumeSpec } from '../../src/core/volume.ts';
import { detectSwarm, forSwarm, stagingPathFor } from '../../src/frontends/csi/swarm.ts';
import { aCall, aSpec, failsWith } from './proxy-stand-ins.ts';

const call = aCall();
const mount: MountCapability = {
  type: 'mount',
  mode: 'SINGLE_NODE_WRITER',
  fsType: '',
  mountFlags: [],
  mountGroup: '',
};
const published = '/data/published/abc123';
const staged = '/data/staged/abc123';

function standIn() {
  const did: unknown[] = [];
  const volumes = new Map<string, { size: number; spec: VolumeSpec }>();
  const note = async (...what: unknown[]) => void did.push(what);
  const driver: Driver = {
    name: 'stand-in',
    constrained: false,
    volumes: {
      sources: new Set(),
      idFor: (spec) => spec.name,
      async create(_call, spec): Promise<Volume> {
        did.push(['create', spec.capacity, spec.capabilities]);
        const { requiredBytes = 0, limitBytes = Number.POSITIVE_INFINITY } = spec.capacity;
        const existing = volumes.get(spec.name);
        if (existing) {
          const fits = existing.size >= requiredBytes && existing.size <= limitBytes;
          if (!fits || existing.spec.parameters.tier !== spec.parameters.tier) {
            throw new CallError('ALREADY_EXISTS', `with ${existing.size} bytes`);
          }
        }
        const size = existing?.size ?? requiredBytes;
        volumes.set(spec.name, { size, spec });
        return { id: spec.name, capacityBytes: size, context: { server: 'nas1' } };
      },
      delete: async () => {},
      async validate(_call, query) {
        did.push(['validate', query.context, query.capabilities]);
        return { confirmed: true };
      },
    },
    expansion: {
      mode: 'ONLINE',
      async expand(_call, { volumeId, capacity }) {
        did.push(['expand', volumeId, capacity]);
        return { capacityBytes: capacity.requiredBytes ?? 0, nodeExpansionRequired: true };
      },
    },
    publication: {
      async publish(_call, request) {
        did.push(['attach', request.capability, request.context]);
        return {};
      },
      unpublish: async () => {},
    },
    node: {
      extra: new Set(),
      info: async () => ({ nodeId: 'n' }),
      stage: (_call, { stagingPath, capability, context }) => note('stage', stagingPath, capability, context),
      unstage: (_call, { stagingPath }) => note('unstage', stagingPath),
      publish: (_call, { targetPath, stagingPath }) => note('publish', targetPath, stagingPath),
      unpublish: (_call, { targetPath }) => note('unpublish', targetPath),
    },
    close: async () => {},
  };
  return { driver, did, volumes };
}

type Whole = Driver & Required<Pick<Driver, 'volumes' | 'node' | 'publication'>>;

const asSwarm = (driver: Driver) => forSwarm(driver, detectSwarm('on', [])) as Whole;

const publishRequest = {
  volumeId: 'v',
  targetPath: published,
  capability: mount,
  readonly: false,
  context: {},
  publishContext: {},
};

describe('how Swarm is known', () => {
  test('by the socket of a managed plugin, from the start', () => {
    assert.equal(detectSwarm('auto', ['/run/docker/plugins/switchboard.sock']).isActive(), true);
    assert.equal(detectSwarm('auto', ['/run/switchboard/csi.sock']).isActive(), false);
    assert.equal(detectSwarm('off', ['/run/docker/plugins/switchboard.sock']).isActive(), false);
    assert.equal(detectSwarm('on', []).isActive(), true);
  });

  test('by the paths that only its agent uses, from the first of them on', () => {
    const swarm = detectSwarm('auto', []);
    for (const path of [
      '/var/lib/kubelet/plugins/x/globalmount',
      '/local/csi/per-alloc/a/b/rw',
      '/data/published/a/b',
    ]) {
      assert.equal(swarm.isCaller(path), false);
    }
    assert.equal(swarm.isCaller(published), true);
    assert.equal(swarm.isActive(), true);
    assert.equal(detectSwarm('off', []).isCaller(published), false);
  });

  test('staging is not offered any more when it is known', () => {
    const swarm = detectSwarm('auto', []);
    const driver = forSwarm(standIn().driver, swarm);
    assert.ok(nodeCapabilities(driver).includes('STAGE_UNSTAGE_VOLUME'));
    swarm.isCaller(staged);
    assert.ok(!nodeCapabilities(driver).includes('STAGE_UNSTAGE_VOLUME'));
    assert.ok(nodeCapabilities(driver).includes('SINGLE_NODE_MULTI_WRITER'));
  });

  test('other orchestrators get what they ask for', async () => {
    const { driver, did } = standIn();
    const { node } = forSwarm(driver, detectSwarm('auto', [])) as Whole;
    await node.publish(call, { ...publishRequest, targetPath: '/pods/x', stagingPath: '/globalmount' });
    await node.unpublish(call, { volumeId: 'v', targetPath: '/pods/x' });
    assert.deepEqual(did, [
      ['publish', '/pods/x', '/globalmount'],
      ['unpublish', '/pods/x'],
    ]);
  });
});

describe('on the node', () => {
  const run = async (work: (node: NonNullable<Driver['node']>) => Promise<void>) => {
    const { driver, did } = standIn();
    await work(asSwarm(driver).node);
    return did.map((entry) => (entry as unknown[]).slice(0, Array.isArray(entry) && entry[0] === 'publish' ? 3 : 2));
  };

  test('publishing stages, and unpublishing unstages', async () => {
    const did = await run(async (node) => {
      await node.publish(call, publishRequest);
      await node.unpublish(call, { volumeId: 'v', targetPath: published });
    });
    assert.deepEqual(did, [
      ['stage', staged],
      ['publish', published, staged],
      ['unpublish', published],
      ['unstage', staged],
    ]);
  });

  test('staged by an agent that learned its capabilities before: the same place, and it goes too', async () => {
    const did = await run(async (node) => {
      await node.stage?.(call, { ...publishRequest, stagingPath: staged });
      await node.publish(call, { ...publishRequest, stagingPath: staged });
      await node.unpublish(call, { volumeId: 'v', targetPath: published });
    });
    assert.deepEqual(did.at(-1), ['unstage', staged]);
    assert.deepEqual(new Set(did.filter(([what]) => what === 'stage').map(([, path]) => path)), new Set([staged]));
  });

  test('staging paths are made from target paths alone', () => {
    assert.equal(stagingPathFor(published), staged);
    assert.equal(stagingPathFor('/x/y'), '/x/.staged-y');
    assert.equal(stagingPathFor('/published/y'), '/staged/y');
  });

  test('an unpublish that fails keeps the volume staged', async () => {
    const { driver, did } = standIn();
    const failing: Driver = {
      ...driver,
      node: { ...(driver.node as NonNullable<Driver['node']>), unpublish: () => Promise.reject(new Error('busy')) },
    };
    const { node } = asSwarm(failing);
    await assert.rejects(async () => node.unpublish(call, { volumeId: 'v', targetPath: published }), /busy/);
    assert.deepEqual(did, []);
  });
});

describe('what its command line lacks', () => {
  test('file system type and mount flags are parameters, and reach the node by the context', async () => {
    const { driver, did } = standIn();
    const { volumes, node, publication } = asSwarm(driver);
    const parameters = { fsType: 'xfs', mountFlags: 'noatime' };
    const wanted = { ...mount, fsType: 'xfs', mountFlags: ['noatime'] };
    const { context } = await volumes.create(call, aSpec('v', { parameters, capabilities: [mount] }));
    assert.deepEqual(did.pop(), ['create', { requiredBytes: 1024 }, [wanted]]);
    assert.deepEqual(context, { server: 'nas1', 'switchboard/fsType': 'xfs', 'switchboard/mountFlags': 'noatime' });
    await node.publish(call, { ...publishRequest, context });
    assert.deepEqual(did[0], ['stage', staged, wanted, { server: 'nas1' }]);
    await publication.publish(call, { volumeId: 'v', nodeId: 'n', capability: mount, readonly: false, context });
    assert.deepEqual(did.at(-1), ['attach', wanted, { server: 'nas1' }]);
    await volumes.validate(call, { volumeId: 'v', context, capabilities: [mount], parameters });
    assert.deepEqual(did.at(-1), ['validate', { server: 'nas1' }, [wanted]]);
  });

  test('block volumes are attached as such, although the manager says mount', async () => {
    const { driver, did } = standIn();
    const { volumes, publication } = asSwarm(driver);
    const spec = aSpec('v', { capabilities: [{ type: 'block', mode: 'SINGLE_NODE_WRITER' }] });
    const { context } = await volumes.create(call, spec);
    await publication.publish(call, { volumeId: 'v', nodeId: 'n', capability: mount, readonly: false, context });
    assert.deepEqual(did.at(-1), ['attach', { type: 'block', mode: 'SINGLE_NODE_WRITER' }, { server: 'nas1' }]);
  });
});

describe('an existing volume', () => {
  const create = async (sizes: { existing: number; required?: number; limit?: number }, parameters = {}) => {
    const world = standIn();
    const existing = aSpec('v', { capacity: { requiredBytes: sizes.existing }, parameters: {} });
    world.volumes.set('v', { size: sizes.existing, spec: existing });
    const { volumes } = asSwarm(world.driver);
    const capacity = { requiredBytes: sizes.required, limitBytes: sizes.limit };
    const volume = await volumes.create(call, aSpec('v', { capacity, parameters }));
    return { size: volume.capacityBytes, expanded: world.did.some((one) => (one as string[])[0] === 'expand') };
  };

  test('that is larger is taken over as it is, whatever the limit', async () => {
    assert.deepEqual(await create({ existing: 20, required: 10, limit: 10 }), { size: 20, expanded: false });
  });

  test('that is smaller is grown', async () => {
    assert.deepEqual(await create({ existing: 10, required: 20 }), { size: 20, expanded: true });
  });

  test('that differs in more than its size is not taken over', async () => {
    await assert.rejects(create({ existing: 20, limit: 10 }, { tier: 'gold' }), failsWith('ALREADY_EXISTS', /with 20/));
  });

  test('is compared as ever for other orchestrators', async () => {
    const { driver, volumes: there } = standIn();
    there.set('v', { size: 20, spec: aSpec('v', { parameters: {} }) });
    const { volumes } = forSwarm(driver, detectSwarm('auto', [])) as Whole;
    const spec = aSpec('v', { capacity: { limitBytes: 10 }, parameters: {} });
    await assert.rejects(async () => volumes.create(call, spec), failsWith('ALREADY_EXISTS'));
  });
});
