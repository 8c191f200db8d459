import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { defaultHostSettings } from '../../src/backends/exec/host-settings.ts';
import { systemDirectories } from '../../src/backends/exec/search-path.ts';
import { hostFlags, hostSettings } from '../../src/cli/host-options.ts';
import { parseMainConfig } from '../../src/cli/main-config.ts';
import { settingReader } from '../../src/cli/setting-reader.ts';
import { UsageError } from '../../src/cli/usage-error.ts';
import { ConfigError } from '../../src/config/problem.ts';

const flags = (given: Record<string, string>, env: Record<string, string> = {}) => hostFlags(settingReader(given, env));
const noWarning = (warning: string) => assert.fail(warning);

const text = `
driver: proxy
proxy: { configFolder: /c }
host:
  strategy: chroot
  root: /mnt/host
  pid: iscsid
  searchPath: [/run/current-system/sw/bin, /usr/bin]
  programs:
    zfs: { path: /opt/zfs, strategy: nsenter, pid: 1, prefix: [nice] }
    iscsiadm: { path: /opt/iscsiadm }
`;

test('the host key of the main file, of a proxy and of a single driver', () => {
  const { host, loaded } = parseMainConfig(text, 'main.yaml', {});
  assert.deepEqual(loaded.warnings, []);
  assert.deepEqual(host, {
    strategy: 'chroot',
    root: '/mnt/host',
    pid: 'iscsid',
    searchPath: ['/run/current-system/sw/bin', '/usr/bin'],
    programs: {
      zfs: { path: '/opt/zfs', strategy: 'nsenter', pid: 1, prefix: ['nice'] },
      iscsiadm: { path: '/opt/iscsiadm' },
    },
  });
  const direct = `driver: local-hostpath\nlocal-hostpath: { shareBasePath: /v, controllerBasePath: /v }\nhost: { root: /h }`;
  assert.deepEqual(parseMainConfig(direct, 'main.yaml', {}).host, { root: '/h' });
  assert.equal(parseMainConfig('driver: proxy\nproxy: { configFolder: /c }', 'main.yaml', {}).host, undefined);
});

test('the example says what the defaults are', async () => {
  const example = await readFile(new URL('../../examples/switchboard.yaml', import.meta.url), 'utf8');
  const { programs, ...host } = parseMainConfig(example, 'switchboard.yaml', {}).host ?? {};
  assert.deepEqual({ ...host, programs: {} }, defaultHostSettings);
  assert.deepEqual(Object.keys(programs ?? {}), ['iscsiadm', 'zfs']);
});

test('mistakes in it have their line', () => {
  const problems = (host: string) => {
    try {
      const { loaded } = parseMainConfig(`driver: proxy\nproxy: { configFolder: /c }\nhost: ${host}`, 'main.yaml', {});
      return loaded.warnings;
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
  };
  for (const host of [
    '{ strategy: sudo }',
    '{ root: host }',
    '{ pid: 0 }',
    '{ searchPath: [bin] }',
    '{ programs: { mount: { path: mount } } }',
  ]) {
    assert.deepEqual(
      problems(host).map(({ severity, line }) => [severity, line]),
      [['error', 3]],
      host,
    );
  }
  assert.match(problems('{ stratgy: auto }')[0]?.message ?? '', /unknown key stratgy .*did you mean strategy/);
});

test('flags and variables go before the file, and the file before the variables of democratic-csi', () => {
  const { host } = parseMainConfig(text, 'main.yaml', {});
  const env = { SWITCHBOARD_HOST_STRATEGY: 'loader', ISCSIADM_HOST_STRATEGY: 'chroot', ISCSIADM_HOST_PATH: '/peer' };
  const settings = hostSettings(flags({ hostRoot: '/flag' }, env), host, env, noWarning);
  assert.deepEqual([settings.strategy, settings.root, settings.pid], ['loader', '/flag', 'iscsid']);
  assert.deepEqual(settings.programs.iscsiadm, { strategy: 'chroot', path: '/opt/iscsiadm' });
});

test('nothing given is everything by default', () => {
  assert.deepEqual(hostSettings(flags({}), undefined, {}, noWarning), defaultHostSettings);
  assert.ok(systemDirectories.includes('/run/current-system/sw/bin'));
});

test('a strategy may name the place', () => {
  assert.deepEqual(flags({ hostStrategy: 'chroot:/mnt/host' }), { strategy: 'chroot', root: '/mnt/host' });
  assert.deepEqual(flags({ hostStrategy: 'nsenter:12' }), { strategy: 'nsenter', pid: 12 });
  assert.deepEqual(flags({}, { DEMOCRATIC_CSI_HOST_STRATEGY: 'nsenter:iscsid' }), {
    strategy: 'nsenter',
    pid: 'iscsid',
  });
  for (const wrong of ['sudo', 'chroot:host', 'direct:/host', '']) {
    assert.throws(() => flags({ hostStrategy: wrong }), UsageError, wrong);
  }
  assert.throws(() => flags({ hostRoot: 'host' }), UsageError);
});
