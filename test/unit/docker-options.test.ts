import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { serveSettings } from '../../src/cli/serve-settings.ts';
import type { Flags } from '../../src/cli/setting-reader.ts';
import { fileNameOf, nameOfId } from '../../src/frontends/docker/names.ts';
import { isMarked, mountWishes, normalised } from '../../src/frontends/docker/options.ts';

describe('names', () => {
  test('different names have different files, short enough and of harmless characters', () => {
    const name = fc.string({ minLength: 1, maxLength: 255, unit: 'binary' });
    fc.assert(
      fc.property(name, name, (one, other) => {
        const file = fileNameOf(one);
        assert.match(file, /^[A-Za-z0-9._-]{1,200}$/);
        assert.ok(!file.startsWith('..'));
        const differ = Buffer.from(one).compare(Buffer.from(other)) !== 0;
        assert.equal(file !== fileNameOf(other), differ);
      }),
      { numRuns: 300 },
    );
  });

  test('an id that is no encoded name is a name itself', () => {
    assert.equal(nameOfId('web.5b0.5d'), 'web[0]');
    assert.equal(nameOfId('pool/vol.1'), 'pool/vol.1');
    assert.equal(nameOfId('plain'), 'plain');
  });
});

describe('options', () => {
  test('access modes in both spellings', () => {
    const mode = (access: string) => mountWishes({ access }).capability.mode;
    assert.deepEqual(
      ['', 'RWO', 'rwop', 'rox', 'rwx', 'multi-node-single-writer', 'SINGLE_NODE_READER_ONLY'].map(mode),
      [
        'SINGLE_NODE_WRITER',
        'SINGLE_NODE_WRITER',
        'SINGLE_NODE_SINGLE_WRITER',
        'MULTI_NODE_READER_ONLY',
        'MULTI_NODE_MULTI_WRITER',
        'MULTI_NODE_SINGLE_WRITER',
        'SINGLE_NODE_READER_ONLY',
      ],
    );
  });

  test('only known words are respelled', () => {
    assert.deepEqual(normalised({ FSTYPE: 'xfs', Size: '1', Tier: 'x' }), { fsType: 'xfs', size: '1', Tier: 'x' });
  });

  test('the mark tells volumes of Docker from others', () => {
    assert.equal(isMarked({ 'switchboard/door': 'docker' }), true);
    assert.equal(isMarked({ connection: 'nas' }), false);
    assert.equal(isMarked(undefined), false);
  });
});

describe('settings', () => {
  const machine = { isRoot: true, home: '/root', hostName: 'h', pid: 1, outIsTerminal: false, hasSystemConfig: false };
  const settings = (flags: Flags, env: Record<string, string> = {}) =>
    serveSettings({ endpoint: ['/x.sock'], ...flags }, { SWITCHBOARD_STATE_DIR: '/state', ...env }, machine);

  test('by default all is in the state directory, and nothing is allowed', () => {
    assert.deepEqual(settings({}).docker, {
      endpoint: undefined,
      stateFolder: '/state/docker',
      mountRoot: '/state/docker/mnt',
      defaults: {},
      scope: undefined,
      secretsFolder: undefined,
      allowUnseenMounts: false,
      restartUnseen: false,
    });
    const { swarm, logFile } = settings({});
    assert.deepEqual([swarm, logFile], ['auto', undefined]);
  });

  test('from flags', () => {
    const flags = {
      dockerSocket: '/run/docker/plugins/sb.sock',
      dockerDefault: ['connection=nas', 'mountFlags=noatime,vers=4.2'],
      dockerScope: 'global',
      dockerMountRoot: '/data/docker',
      dockerSecretsFolder: '/etc/secrets',
      dockerAllowUnseenMounts: true,
      dockerRestartUnseen: true,
      swarm: 'off',
      logFile: '/var/log/sb.log',
      logFileSize: '1Mi',
    };
    assert.deepEqual(settings(flags).docker, {
      endpoint: 'unix:/run/docker/plugins/sb.sock',
      stateFolder: '/state/docker',
      mountRoot: '/data/docker',
      defaults: { connection: 'nas', mountFlags: 'noatime,vers=4.2' },
      scope: 'global',
      secretsFolder: '/etc/secrets',
      allowUnseenMounts: true,
      restartUnseen: true,
    });
    const { swarm, logFile } = settings(flags);
    assert.deepEqual([swarm, logFile], ['off', { path: '/var/log/sb.log', maxBytes: 2 ** 20 }]);
  });

  test('from the environment, as `docker plugin set` writes it', () => {
    const env = { SWITCHBOARD_DOCKER_DEFAULT: 'connection=nas  mountFlags=noatime,nodev', SWITCHBOARD_SWARM: 'on' };
    assert.deepEqual(settings({}, env).docker.defaults, { connection: 'nas', mountFlags: 'noatime,nodev' });
    assert.equal(settings({}, env).swarm, 'on');
  });

  test('mistakes', () => {
    assert.throws(() => settings({ dockerScope: 'wide' }), /docker-scope: "wide" is not one of global, local/);
    assert.throws(() => settings({ dockerDefault: ['nas'] }), /docker-default: "nas" is not key=value/);
    assert.throws(() => settings({ swarm: 'maybe' }), /swarm: "maybe"/);
    assert.throws(() => settings({ logFile: 'x', logFileSize: 'big' }), /"big" is not a size/);
  });
});
