import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseMainConfig } from '../../src/cli/main-config.ts';
import { type RunningServer, startServer } from '../../src/cli/server.ts';
import { createLogger } from '../../src/core/logger.ts';
import { switchboard } from '../unit/cli-shell.ts';

describe('ctl against a server with one local connection', () => {
  let folder: string;
  let server: RunningServer;
  let logged = '';
  const ctl = (...args: string[]) => switchboard(['ctl', ...args], { CSI_ENDPOINT: `unix://${folder}/csi.sock` });
  const json = async (...args: string[]) => {
    const { code, out, err } = await ctl(...args, '--json');
    assert.deepEqual([code, err], [0, ''], err);
    return JSON.parse(out);
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cli-ctl-'));
    await writeFile(
      join(folder, 'local.yaml'),
      `driver: local-hostpath\nlocal-hostpath: { shareBasePath: ${folder}/v, controllerBasePath: ${folder}/v }\n`,
    );
    server = await startServer({
      config: parseMainConfig(`driver: proxy\nproxy: { configFolder: ${folder} }\n`, 'main.yaml', {}),
      settings: {
        csiName: 'org.example.test',
        nodeName: 'node1',
        specMinor: 12,
        modes: { controller: true, node: true },
        endpoints: [`unix://${folder}/csi.sock`],
        socketMode: 0o600,
        tls: undefined,
        allowInsecureTcp: false,
      },
      env: process.env,
      log: createLogger({
        level: 'silly',
        format: 'json',
        write: (line) => {
          logged += line;
        },
      }),
    });
  });

  after(async () => {
    await server.stop(0);
    await rm(folder, { recursive: true });
  });

  test('probe', async () => {
    const { code, out } = await switchboard(['probe', '--csi-address', `${folder}/csi.sock`, '--csi-version', '1.5.0']);
    assert.deepEqual([code, out], [0, 'ready\n']);
    const env = { DEMOCRATIC_CSI_LIVENESS_PROBE_CSI_ADDRESS: `unix://${folder}/csi.sock` };
    assert.equal((await switchboard(['probe'], env)).code, 0);
  });

  test('probe where nobody answers', async () => {
    const { code, err } = await switchboard(['probe', '--endpoint', `unix://${folder}/none.sock`, '--timeout', '2']);
    assert.equal(code, 1);
    assert.match(err, /^error: UNAVAILABLE: nobody answers on unix:\/\/.*there is no such socket/);
  });

  test('info', async () => {
    const info = await json('info');
    assert.deepEqual([info.name, info.ready, info.node.id], ['org.example.test', true, 'n=node1']);
    assert.ok(info.capabilities.controller.includes('CREATE_DELETE_VOLUME'));
    assert.ok(info.capabilities.node.includes('STAGE_UNSTAGE_VOLUME'));
    const { out } = await ctl('info');
    assert.match(out, /^plugin +org\.example\.test \d/m);
    assert.match(out, /^node id +n=node1$/m);
  });

  test('the life of a volume', async () => {
    assert.deepEqual(await json('list'), { volumes: [] });
    assert.equal((await ctl('list')).out, 'no volumes\n');

    const made = await json('create', 'data', '--size', '1Gi', '--connection', 'local');
    assert.deepEqual(Object.keys(made), ['id', 'capacityBytes', 'context', 'topology']);
    assert.deepEqual([made.id, made.capacityBytes], ['v:local/data', 2 ** 30]);
    await writeFile(join(made.context.path, 'file'), 'content');

    const table = (await ctl('list')).out.split('\n');
    assert.match(table[0] ?? '', /^VOLUME +SIZE /);
    assert.match(table[1] ?? '', /^v:local\/data +1 GiB /);
    assert.equal((await json('get', 'v:local/data')).id, 'v:local/data');

    const stage = join(folder, 'stage');
    const target = join(folder, 'pods/target');
    assert.equal((await ctl('stage', 'v:local/data', stage)).code, 0);
    assert.equal((await ctl('publish', 'v:local/data', target, '--staging', stage, '--readonly')).code, 0);
    assert.equal(await readFile(join(target, 'file'), 'utf8'), 'content');
    await assert.rejects(writeFile(join(target, 'more'), ''), { code: 'EROFS' });
    const stats = await json('stats', 'v:local/data', target);
    assert.deepEqual(
      stats.usage.map((one: { unit: string }) => one.unit),
      ['BYTES', 'INODES'],
    );
    assert.match((await ctl('stats', 'v:local/data', target)).out, /^bytes +[\d.]+ [KMGT]iB/m);
    assert.equal((await ctl('unpublish', 'v:local/data', target)).code, 0);
    assert.equal((await ctl('unstage', 'v:local/data', stage)).code, 0);

    assert.deepEqual(await json('expand', 'v:local/data', '2Gi'), {
      id: 'v:local/data',
      capacityBytes: 2 ** 31,
      nodeExpansionRequired: false,
    });
    assert.equal((await ctl('delete', 'v:local/data')).out, 'deleted v:local/data\n');
    assert.equal((await ctl('delete', 'v:local/data')).code, 0);
  });

  test('snapshots, what is made from them, and clones', async () => {
    const { id } = await json('create', 'origin', '--connection', 'local', '--size', '10M');
    const short = await json('snapshot', id, 'one');
    const long = await json('snapshot', 'create', id, 'two');
    assert.deepEqual(Object.keys(short), ['id', 'volumeId', 'sizeBytes', 'createdAt', 'ready']);
    assert.equal((await json('snapshot', 'list', '--volume', id)).snapshots.length, 2);
    assert.equal((await json('snapshot', 'list', '--limit', '1')).snapshots.length, 1);
    assert.deepEqual(await json('snapshot', 'get', long.id), long);
    assert.match((await ctl('snapshot', 'get', long.id)).out, /^created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(/m);

    const from = ['--from-snapshot', short.id, '--connection', 'local', '--size', '10M'];
    assert.deepEqual((await json('create', 'restored', ...from)).source, { snapshot: short.id });
    assert.deepEqual((await json('clone', id, 'copy', '--size', '10M')).source, { volume: id });
    for (const name of ['origin', 'restored', 'copy']) assert.equal((await ctl('delete', `v:local/${name}`)).code, 0);
    for (const { id: one } of [short, long]) assert.equal((await ctl('snapshot', 'delete', one)).code, 0);
    assert.equal((await ctl('snapshot', 'list')).out, 'no snapshots\n');
  });

  test('list follows pages and stops at its limit', async () => {
    const names = ['p1', 'p2', 'p3'];
    for (const name of names) await json('create', name, '--connection', 'local', '--size', '1M');
    assert.equal((await json('list')).volumes.length, 3);
    assert.equal((await json('list', '--limit', '2')).volumes.length, 2);
    for (const name of names) await ctl('delete', `v:local/${name}`);
  });

  test('capacity and validate', async () => {
    const { availableBytes } = await json('capacity', '--connection', 'local');
    assert.ok(availableBytes > 0);
    assert.match((await ctl('capacity')).out, /^available +[\d.]+ [KMGT]iB$/m);
    await json('create', 'val', '--connection', 'local', '--size', '1M');
    assert.equal((await ctl('validate', 'v:local/val', '--access', 'rwx')).code, 0);
    const refused = await ctl('validate', 'v:local/val', '--block', '--json');
    assert.equal(refused.code, 1);
    assert.equal(JSON.parse(refused.out).confirmed, false);
    await ctl('delete', 'v:local/val');
  });

  test('a call that fails: the code, one line on standard error, exit code 1', async () => {
    await json('create', 'twice', '--connection', 'local', '--size', '1M');
    const { code, out, err } = await ctl('create', 'twice', '--connection', 'local', '--size', '2M');
    assert.deepEqual([code, out], [1, '']);
    assert.match(err, /^error: ALREADY_EXISTS: .*\n$/);
    assert.match((await ctl('get', 'v:local/none')).err, /^error: NOT_FOUND: /);
    assert.match((await ctl('create', 'x', '--connection', 'no')).err, /^error: INVALID_ARGUMENT: /);
    await ctl('delete', 'v:local/twice');
  });

  test('wrong usage: exit code 2, and no call', async () => {
    const mistakes: readonly string[][] = [
      ['create'],
      ['create', 'x', '--size', 'large'],
      ['create', 'x', '--access', 'rwq'],
      ['create', 'x', '--block', '--fs-type', 'ext4'],
      ['create', 'x', '--from-snapshot', 'a', '--from-volume', 'b'],
      ['create', 'x', 'y'],
      ['list', '--limit', '0'],
      ['list', '--timeout', 'soon'],
      ['lsit'],
      [],
    ];
    for (const args of mistakes) {
      const { code, out, err } = await ctl(...args);
      assert.deepEqual([code, out], [2, ''], args.join(' '));
      assert.notEqual(err, '');
    }
    assert.match((await ctl('create')).err, /Try "switchboard ctl create --help"/);
  });

  test('secrets show nowhere', async () => {
    const file = join(folder, 'secret');
    await writeFile(file, 'from-a-file\n');
    await chmod(file, 0o600);
    const flags = ['--secret', 'password=on-the-line', '--secret', `key=@${file}`];
    const made = await ctl('create', 'hidden', '--connection', 'local', '--size', '1M', ...flags);
    assert.equal(made.code, 0);
    const wrong = await ctl('create', 'hidden', '--secret', 'on-the-line');
    const gone = await ctl('delete', 'v:local/hidden', ...flags);
    for (const text of [logged, made.out, made.err, wrong.err, gone.out]) {
      assert.doesNotMatch(text, /on-the-line|from-a-file/);
    }
    const missing = await ctl('delete', 'v:local/hidden', '--secret', 'key=@/does/not/exist');
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^error: ENOENT: .*'\/does\/not\/exist'\n$/);
  });
});
