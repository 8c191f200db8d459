import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CommandFailed } from '../../src/backends/exec/command-failed.ts';
import type { Command } from '../../src/backends/exec/run.ts';
import { defaultTimeLimits } from '../../src/backends/exec/time-limits.ts';
import { detachedContext } from '../../src/core/call.ts';
import { CallError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { MountCapability } from '../../src/core/volume.ts';
import { attachers } from '../../src/node/attachers/index.ts';
import { type Mount, type MountTable, parseMountTable } from '../../src/node/mount-table.ts';
import { serverOf } from '../../src/node/share-source.ts';
import { wantShare } from '../../src/node/want-share.ts';

const capability: MountCapability = {
  type: 'mount',
  mode: 'MULTI_NODE_MULTI_WRITER',
  fsType: '',
  mountFlags: [],
  mountGroup: '',
};

interface Facts {
  readonly driver: 'nfs' | 'smb' | 'lustre';
  readonly server: string;
  readonly share: string;
  readonly flags?: readonly string[];
  readonly secrets?: Readonly<Record<string, string>>;
  readonly mountGroup?: string;
  readonly table?: MountTable;
  readonly fail?: () => unknown;
}

/** The share as it is wanted, and the command that mounts it. */
async function wanted({ driver, server, share, flags = [], secrets = {}, mountGroup = '', ...more }: Facts) {
  const ran: Command[] = [];
  const table = more.table ?? parseMountTable('');
  const tools = {
    limits: defaultTimeLimits,
    settings: {},
    readTable: async () => table,
    run: async (_call: unknown, command: Command) => {
      ran.push(command);
      if (more.fail) throw more.fail();
      return { code: 0, stdout: '', stderr: '' };
    },
  };
  const call = { ...detachedContext(silentLogger), secrets };
  const context = { node_attach_driver: driver, server, share, provisioner_driver: 'd' };
  const attacher = attachers[driver]?.(tools);
  const asked = { ...capability, mountGroup };
  const request = { volumeId: 'v', context, publishContext: {}, capability: asked, table };
  const attachment = await attacher?.attach(call, request);
  assert.equal(attachment?.type, 'mount');
  const want = wantShare(tools, attachment, { readonly: false, flags });
  const mount = async () => {
    await want.mount(call, table, '/place');
    return ran[0] as Command;
  };
  return { want, mount, ran };
}

const lines = async (facts: Facts) => (await (await wanted(facts)).mount()).args.join(' ');

describe('what is mounted', () => {
  const nfs = { driver: 'nfs', server: 'nas', share: '/v/1' } as const;
  const smb = { driver: 'smb', server: 'nas', share: 'v/1' } as const;

  test('NFS: names, addresses, flags of the secret last, one try', async () => {
    assert.equal(await lines(nfs), '-t nfs -o retry=0 nas:/v/1 /place');
    assert.equal(await lines({ ...nfs, server: 'fd00::1' }), '-t nfs -o retry=0 [fd00::1]:/v/1 /place');
    assert.equal(await lines({ ...nfs, server: '[fe80::1%e0]' }), '-t nfs -o retry=0 [fe80::1%e0]:/v/1 /place');
    const flags = ['vers=4.2', 'bg', 'retry=1'];
    const secrets = { mount_flags: 'hard', 'democratic-csi.org/d/mount_flags': 'soft,port=2050' };
    assert.equal(await lines({ ...nfs, flags, secrets }), '-t nfs -o vers=4.2,retry=1,soft,port=2050 nas:/v/1 /place');
  });

  test('Lustre: network ids', async () => {
    const server = '10.0.0.1@tcp,10.1.0.1@o2ib:10.0.0.2@tcp';
    assert.equal(
      await lines({ driver: 'lustre', server, share: '/fs/a', flags: ['flock'] }),
      `-t lustre -o flock ${server}:/fs/a /place`,
    );
  });

  test('SMB: addresses without brackets, the group', async () => {
    assert.equal(await lines(smb), '-t cifs -o guest //nas/v/1 /place');
    assert.equal(
      await lines({ ...smb, server: '[fd00::1]', share: '/v//1/' }),
      '-t cifs -o guest //fd00::1/v/1 /place',
    );
    assert.equal(
      await lines({ ...smb, mountGroup: '70', flags: ['uid=5'] }),
      '-t cifs -o uid=5,guest,gid=70 //nas/v/1 /place',
    );
  });

  test('SMB: an account is taken out of flags and secrets, whatever is in the password, and is in no argument', async () => {
    const rows: [Partial<Facts>, string, { user?: string; password?: string }][] = [
      [
        { secrets: { mount_flags: 'username=al,password=p,,w "x,vers=3.0' } },
        'vers=3.0',
        { user: 'al', password: 'p,w "x' },
      ],
      [{ secrets: { mount_flags: 'user=al,pass="p,w "x" y",ro' } }, 'ro', { user: 'al', password: 'p,w "x" y' }],
      [
        { secrets: { 'democratic-csi.org/username': 'D\\al', password: 'a,b=c' } },
        'domain=D',
        { user: 'al', password: 'a,b=c' },
      ],
      [
        { flags: ['username=x', 'password=y', 'domain=E'], secrets: { username: 'al' } },
        'domain=E',
        { user: 'al', password: 'y' },
      ],
      [{ flags: ['username=al'] }, '', { user: 'al', password: '' }],
      [{ flags: ['credentials=/etc/smb'] }, 'credentials=/etc/smb', {}],
      [{ flags: ['sec=krb5'] }, 'sec=krb5', {}],
      [{ flags: ['guest'] }, 'guest', {}],
    ];
    for (const [facts, options, { user, password }] of rows) {
      const { args, env } = await (await wanted({ ...smb, ...facts })).mount();
      assert.deepEqual(args, ['-t', 'cifs', ...(options ? ['-o', options] : []), '//nas/v/1', '/place']);
      assert.deepEqual({ ...env }, user === undefined ? {} : { USER: user, PASSWD: password });
    }
  });

  test('what could be anything else is refused, and no part of a password is repeated', async () => {
    const bad: Partial<Facts>[] = [
      { server: '' },
      { server: '-o' },
      { server: 'a b' },
      { server: 'a:b' },
      { share: '' },
      { share: '/a/../b' },
      { share: '/a\nb' },
      { flags: ['password=hush'] },
      { secrets: { password: 'hush' } },
      { secrets: { mount_flags: 'username=a,password=hush,!hush' } },
      { secrets: { mount_flags: 'username=a,password=hush\n' } },
      { secrets: { mount_flags: 'username=a,password2=hush' } },
      { secrets: { username: 'a', domain: 'b,password=hush' } },
      { mountGroup: '1,password=hush' },
    ];
    for (const facts of bad) {
      const failure = await wanted({ ...smb, ...facts }).then(
        () => assert.fail(JSON.stringify(facts)),
        (error: unknown) => error,
      );
      assert.ok(failure instanceof CallError && failure.code === 'INVALID_ARGUMENT', String(failure));
      assert.doesNotMatch(failure.message, /hush/);
    }
    const secrets = { mount_flags: 'password=hush' };
    await assert.rejects(wanted({ ...nfs, secrets }), {
      code: 'INVALID_ARGUMENT',
      message: 'the secret mount_flags has credentials, which this volume does not take',
    });
  });
});

describe('what is known again', () => {
  const line = (fsType: string, source: string, root = '/', options = 'rw') =>
    parseMountTable(`3 1 0:50 ${root} /place rw - ${fsType} ${source.replaceAll(' ', '\\040')} ${options}\n`);
  const only = (table: MountTable) => table.mounts[0] as Mount;
  const matches = async (facts: Facts, table: MountTable) =>
    (await wanted({ ...facts, table })).want.matches(only(table));

  test('NFS', async () => {
    const nfs = { driver: 'nfs', server: 'nas', share: '/v/1/' } as const;
    for (const [table, expected] of [
      [line('nfs4', 'nas:/v/1'), true],
      [line('nfs', 'NAS:/v//1/'), true],
      [line('nfs4', 'nas:/v/2'), false],
      [line('nfs4', 'nas:/v'), false],
      [line('cifs', '//nas/v/1'), false],
      [line('nfs4', 'other:/v/1'), false],
    ] as const) {
      assert.equal(await matches(nfs, table), expected, only(table).source);
    }
    const byAddress = { ...nfs, server: 'fd00:0:0::1' };
    assert.equal(await matches(byAddress, line('nfs4', '[fd00::1]:/v/1')), true);
    assert.equal(await matches(byAddress, line('nfs4', 'nas:/v/1', '/', 'rw,addr=fd00::1')), true);
    assert.equal(await matches(byAddress, line('nfs4', 'nas:/v/1', '/', 'rw,addr=fd00::2')), false);
    const local = { ...nfs, server: 'localhost' };
    assert.equal(await matches(local, line('nfs4', '127.0.0.1:/v/1', '/', 'rw,addr=127.0.0.1')), true);
  });

  test('SMB, with folders as a root or as a part of the source', async () => {
    const smb = { driver: 'smb', server: 'nas', share: 'v/Sub/dir' } as const;
    for (const [table, expected] of [
      [line('cifs', '//NAS/V/Sub/dir'), true],
      [line('cifs', '//nas/v', '/Sub/dir'), true],
      [line('cifs', '//nas/v/elsewhere', '/Sub/dir'), true],
      [line('cifs', '//nas/v'), false],
      [line('cifs', '//nas/v/sub/dir'), false],
      [line('cifs', '//nas/w', '/Sub/dir'), false],
      [line('cifs', '//nas2/v/Sub/dir'), false],
    ] as const) {
      assert.equal(await matches(smb, table), expected, `${only(table).source} ${only(table).root}`);
    }
  });

  test('servers are told apart by protocol, host and port', () => {
    const server = (fsType: string, source: string, options?: string) =>
      serverOf(only(line(fsType, source, '/', options)));
    assert.equal(server('nfs4', 'nas:/a'), server('nfs', 'NAS:/b'));
    assert.equal(server('nfs4', '[FD00::1]:/a'), 'nfs fd00::1');
    assert.notEqual(server('nfs4', 'nas:/a', 'rw,port=2050'), server('nfs4', 'nas:/a'));
    assert.notEqual(server('cifs', '//nas/a'), server('nfs4', 'nas:/a'));
    assert.equal(server('lustre', '10.0.0.1@tcp:10.0.0.2@tcp:/fs/a'), 'lustre 10.0.0.1@tcp:10.0.0.2@tcp');
    assert.equal(server('fuse.sshfs', 'nas:/a'), undefined);
  });
});

/** As nfs-utils 2.8 and cifs-utils 7.4 say it. */
test('errors of the mount programs', async () => {
  const text = (said: string) =>
    new CommandFailed({ program: 'mount', exitCode: 32, signal: null, stdout: '', stderr: said });
  const refer = '\nRefer to the mount.cifs(8) manual page (e.g. man mount.cifs) and kernel log messages (dmesg)';
  const rows: ['nfs' | 'smb', string, string, RegExp][] = [
    [
      'nfs',
      'mount.nfs: access denied by server while mounting a:/b',
      'PERMISSION_DENIED',
      /no such export, or not for/,
    ],
    [
      'nfs',
      'mount.nfs: mounting a:/b failed, reason given by server: No such file or directory',
      'NOT_FOUND',
      /reason/,
    ],
    ['nfs', 'mount.nfs: Connection refused for a:/b on /p', 'UNAVAILABLE', /refused/],
    ['nfs', 'mount.nfs: No route to host for a:/b on /p', 'UNAVAILABLE', /route/],
    ['nfs', 'mount.nfs: Connection timed out for a:/b on /p', 'UNAVAILABLE', /timed out/],
    ['nfs', 'mount.nfs: an incorrect mount option was specified for /p', 'INVALID_ARGUMENT', /incorrect/],
    ['nfs', 'mount.nfs: rpc.statd is not running but is required for remote locking.', 'FAILED_PRECONDITION', /nolock/],
    [
      'nfs',
      'mount: /p: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.',
      'FAILED_PRECONDITION',
      /install/,
    ],
    [
      'nfs',
      'mount.nfs: requested NFS version or transport protocol is not supported for /p',
      'FAILED_PRECONDITION',
      /vers=/,
    ],
    ['smb', `mount error(13): Permission denied${refer}`, 'PERMISSION_DENIED', /Permission denied; the server refuses/],
    ['smb', `mount error(2): No such file or directory${refer}`, 'NOT_FOUND', /no such share or folder$/],
    ['smb', `mount error(22): Invalid argument${refer}`, 'INVALID_ARGUMENT', /flag/],
    [
      'smb',
      'mount error(111): could not connect to 10.0.2.15Unable to find suitable address.',
      'UNAVAILABLE',
      /10\.0\.2\.15$/,
    ],
    [
      'smb',
      'mount error(115): could not connect to 10.0.2.15Unable to find suitable address.',
      'UNAVAILABLE',
      /10\.0\.2\.15$/,
    ],
    ['smb', 'mount error: could not resolve address for nas: Unknown error', 'UNAVAILABLE', /resolve/],
    ['smb', `mount error(95): Operation not supported${refer}`, 'FAILED_PRECONDITION', /vers=/],
    ['smb', 'something new', 'INTERNAL', /something new/],
  ];
  for (const [index, [driver, said, code, message]] of rows.entries()) {
    // Each its own server: a silent one would be left alone.
    const { mount } = await wanted({ driver, server: `fails${index}`, share: '/b', fail: () => text(said) });
    await assert.rejects(mount(), { code, message }, said);
  }
});

test('a silent server is not asked again at once', async () => {
  const fail = () => new CallError('DEADLINE_EXCEEDED', '`mount` did not finish within 30 s and was ended');
  const { mount, ran } = await wanted({ driver: 'nfs', server: 'mute', share: '/b', fail });
  await assert.rejects(mount(), {
    code: 'UNAVAILABLE',
    message: /^mute:\/b cannot be mounted: its server does not answer/,
  });
  await assert.rejects(mount(), { code: 'UNAVAILABLE', message: /^nfs mute does not answer since/ });
  assert.equal(ran.length, 1);
});
