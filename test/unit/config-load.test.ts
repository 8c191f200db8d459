// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that are expanded
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import fc from 'fast-check';
import * as v from 'valibot';
import { advertisedFrom, commonEntries } from '../../src/config/common.ts';
import { loadConfig, parseConfig } from '../../src/config/load.ts';
import { octalMode } from '../../src/config/octal-mode.ts';
import { ConfigError, formatProblem } from '../../src/config/problem.ts';
import { secret } from '../../src/config/secret.ts';
import { CallError, errnoOf } from '../../src/core/errors.ts';

const schema = v.object({
  ...commonEntries,
  storage: v.optional(
    v.object({
      host: v.string(),
      port: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65535))),
      mode: v.optional(octalMode()),
      password: v.optional(secret(v.pipe(v.string(), v.minLength(3)))),
      version: v.optional(v.picklist([1, 2])),
      cli: v.optional(
        v.object({ sudoEnabled: v.optional(v.boolean()), paths: v.optional(v.record(v.string(), v.string())) }),
      ),
      portals: v.optional(v.array(v.object({ id: v.number(), name: v.optional(v.string()) }))),
      target: v.optional(v.union([v.string(), v.object({ iqn: v.string() })])),
      login: v.optional(
        v.variant('type', [
          v.object({ type: v.literal('key'), file: v.string() }),
          v.object({ type: v.literal('user'), user: v.string() }),
        ]),
      ),
    }),
  ),
});
const schemaFor = (driver: string) => (driver === 'demo' || driver === 'demo-nfs' ? schema : undefined);
const driverNames = ['demo', 'demo-nfs', 'local-hostpath'];

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly under?: unknown;
}

const load = (text: string, given: Given = {}) =>
  parseConfig(text, 'f.yaml', schemaFor, { env: given.env ?? {}, under: given.under, driverNames });

function problemsOf(text: string, given?: Given): readonly string[] {
  try {
    load(text, given);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    assert.equal(error.code, 'FAILED_PRECONDITION');
    return error.problems.map(formatProblem);
  }
  assert.fail(`accepted: ${text}`);
}

const warningsOf = (text: string, given?: Given) => load(text, given).warnings.map(formatProblem);
const storage = (lines: string) => `driver: demo\nstorage:\n  host: nas1\n${lines}`;

test('a good file gives typed options and no warnings', () => {
  const text = storage('  port: 22\n  mode: "0750"\n  cli: {sudoEnabled: true}\ninstance_id:\n');
  const { driver, value, warnings } = load(text);
  assert.equal(driver, 'demo');
  assert.deepEqual(value, {
    driver: 'demo',
    storage: { host: 'nas1', port: 22, mode: 0o750, cli: { sudoEnabled: true } },
  });
  assert.deepEqual(warnings, []);
});

const mistakes: readonly (readonly [string, string])[] = [
  [
    '  cli:\n    sudoEnabled: maybe\n',
    'f.yaml:5:18: error: expected boolean at storage.cli.sudoEnabled, found "maybe"',
  ],
  ['  port: 70000\n', 'f.yaml:4:9: error: expected at most 65535 at storage.port, found 70000'],
  ['  port: 1.5\n', 'f.yaml:4:9: error: expected a whole number at storage.port, found 1.5'],
  ['  port: [22]\n', 'f.yaml:4:9: error: expected number at storage.port, found a list'],
  ['  version: 3\n', 'f.yaml:4:12: error: expected 1 or 2 at storage.version, found 3'],
  [
    '  mode: rwxr-xr-x\n',
    'f.yaml:4:9: error: expected a permission mode in octal digits, such as "0755" at storage.mode, found "rwxr-xr-x"',
  ],
  ['  portals:\n    - name: a\n', 'f.yaml:5:7: error: expected the key id in storage.portals[0], found nothing'],
  ['  portals:\n    - id:\n', 'f.yaml:5:7: error: expected the key id in storage.portals[0], found nothing'],
  ['  target: {iqm: x}\n', 'f.yaml:4:3: error: expected the key iqn in storage.target, found nothing'],
  ['  target: [x]\n', 'f.yaml:4:3: error: expected map at storage.target, found a list'],
  [
    '  login: {type: usr}\n',
    'f.yaml:4:17: error: expected one of "key", "user" at storage.login.type, found "usr"; did you mean "user"?',
  ],
  ['  login: {}\n', 'f.yaml:4:3: error: expected one of "key", "user" at storage.login.type, found nothing'],
  ['  cli: [a]\n', 'f.yaml:4:3: error: expected map at storage.cli, found a list'],
  ['  cli:\n    paths: {zfs: [a]}\n', 'f.yaml:5:18: error: expected string at storage.cli.paths.zfs, found a list'],
  [
    '  password: ab\n',
    'f.yaml:4:13: error: expected a length of at least 3 at storage.password, found a string (not shown: it is a secret)',
  ],
  [
    'csi:\n  access_modes: [SINGLE_NODE_WRITER, MULTI_NODE_MULTI_WRITERS]\n',
    'f.yaml:5:38: error: expected one of "UNKNOWN", "SINGLE_NODE_WRITER", "SINGLE_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY", "MULTI_NODE_SINGLE_WRITER", "MULTI_NODE_MULTI_WRITER", "SINGLE_NODE_SINGLE_WRITER", "SINGLE_NODE_MULTI_WRITER" at csi.access_modes[1], found "MULTI_NODE_MULTI_WRITERS"; did you mean "MULTI_NODE_MULTI_WRITER"?',
  ],
];
for (const [lines, expected] of mistakes) {
  test(`mistake: ${expected.slice(0, 120)}`, () => {
    assert.ok(problemsOf(storage(lines)).includes(expected), problemsOf(storage(lines)).join('\n'));
  });
}

test('a missing key points at the map that should have it', () => {
  assert.deepEqual(problemsOf('driver: demo\nstorage:\n  port: 1\n'), [
    'f.yaml:2:1: error: expected the key host in storage, found nothing',
  ]);
});

test('all problems are collected, in the order of the file', () => {
  const text = storage('  prot: 1\n  port: x\n  cli: {sudoEnabled: 3}\nunknwon: 1\n');
  assert.deepEqual(problemsOf(text), [
    'f.yaml:4:3: warning: unknown key prot in storage, ignored; did you mean port?',
    'f.yaml:5:9: error: expected number at storage.port, found "x"',
    'f.yaml:6:22: error: expected boolean at storage.cli.sudoEnabled, found 3',
    'f.yaml:7:1: warning: unknown key unknwon, ignored; known are driver, instance_id, csi, service, node, _private, proxy, storage',
  ]);
  assert.throws(() => load(text), {
    message: 'f.yaml:5:9: expected number at storage.port, found "x" (and 1 more problem)',
  });
});

test('unknown keys are found in lists, records, unions and variants, and never fail a load', () => {
  const text = storage(
    '  portals: [{id: 1, nmae: x}]\n  target: {iqn: x, lun: 0}\n  login: {type: key, file: f, user: u}\nnode: {format: {xfs: {customOption: []}}}\n',
  );
  assert.deepEqual(warningsOf(text), [
    'f.yaml:4:21: warning: unknown key nmae in storage.portals[0], ignored; did you mean name?',
    'f.yaml:5:20: warning: unknown key lun in storage.target, ignored; known are iqn',
    'f.yaml:6:31: warning: unknown key user in storage.login, ignored; known are type, file',
    'f.yaml:7:23: warning: unknown key customOption in node.format.xfs, ignored; did you mean customOptions?',
  ]);
});

test('keys that have no effect here are a warning', () => {
  const text =
    'driver: demo\nnode:\n  csiProxy: {services: {disk: }}\n_private: {csi: {volume: {derivedContext: {driver: memory}}}}\n';
  assert.deepEqual(warningsOf(text), [
    'f.yaml:3:3: warning: node.csiProxy has no effect: it is for Windows only',
    'f.yaml:4:27: warning: _private.csi.volume.derivedContext has no effect: it is for Windows only',
  ]);
});

test('harmless differences of type are taken as they were meant', () => {
  const text = storage(
    '  port: "22"\n  version: "2"\n  password: 0123456\n  cli: {sudoEnabled: "true", paths: {zfs: 12, sudo: true}}\n  target: 0010\ninstance_id: 12345678901234567890\n',
  );
  const { value } = load(text);
  assert.equal(value.instance_id, '12345678901234567890');
  assert.deepEqual(value.storage, {
    host: 'nas1',
    port: 22,
    version: 2,
    password: '0123456',
    target: '0010',
    cli: { sudoEnabled: true, paths: { zfs: '12', sudo: 'true' } },
  });
});

test('the name of the driver', () => {
  assert.deepEqual(problemsOf('instance_id: x\n'), [
    "f.yaml:1:1: error: expected the key driver with a driver's name, found nothing",
  ]);
  assert.deepEqual(problemsOf('a: 1\ndriver:\n  - demo\n'), [
    "f.yaml:3:3: error: expected the key driver with a driver's name, found a list",
  ]);
  assert.deepEqual(problemsOf('driver: demo-nsf\n'), [
    'f.yaml:1:9: error: there is no driver "demo-nsf"; did you mean demo-nfs?',
  ]);
  assert.deepEqual(problemsOf('driver: __proto__\n'), [
    'f.yaml:1:9: error: there is no driver "__proto__"; known are demo, demo-nfs, local-hostpath',
  ]);
});

test('variables of the environment', () => {
  const text = storage(
    '  port: $PORT\n  password: $PW\n  cli: {sudoEnabled: $SUDO}\n  mode: $MODE\n  portals: $PORTALS\n',
  );
  const env = { PORT: '22', PW: '123456', SUDO: 'true', MODE: '0700', PORTALS: '[{"id": 1, "nam": "x"}]' };
  const { value, warnings } = load(text, { env });
  assert.deepEqual(value.storage, {
    host: 'nas1',
    port: 22,
    password: '123456',
    cli: { sudoEnabled: true },
    mode: 0o700,
    portals: [{ id: 1 }],
  });
  assert.deepEqual(warnings.map(formatProblem), [
    'f.yaml:8:3: warning: unknown key nam in storage.portals[0], ignored; did you mean name?',
  ]);
});

test('a password that looks like JSON stays the text it is', () => {
  const { value } = load(storage('  password: $PW\n'), { env: { PW: '{"a": 1}' } });
  assert.equal(value.storage?.password, '{"a": 1}');
});

test('an unset variable is a warning where it is mentioned', () => {
  assert.deepEqual(warningsOf(storage('  target: "nas-$SUFFIX"\n')), [
    'f.yaml:4:11: warning: the variable SUFFIX is not set, so it is empty at storage.target; write $$ for a literal dollar',
  ]);
});

test('errors show neither secrets nor what variables contain', () => {
  const env = { PW: 'hunter2', SHORT: 'hu' };
  const text = storage('  port: $PW\n  password: $SHORT\n  version: hunter\n');
  const problems = problemsOf(text, { env });
  assert.equal(problems[0], 'f.yaml:4:9: error: expected number at storage.port, found what "$PW" contains');
  assert.equal(problems.length, 3);
  assert.doesNotMatch(problems.join(), /hunter2|"hu"/);
  const secretMap = problemsOf(storage('  password: {a: hunter2}\n'));
  assert.deepEqual(secretMap, ['f.yaml:4:13: error: expected string at storage.password, found a map']);
});

test('what the main file says stands under the connection', () => {
  const main = load(
    'driver: demo\nnode: {mount: {mount_flags: "noatime,$$x"}, format: {xfs: {customOptions: [-K]}}}\n',
  );
  const { value } = load('driver: demo\nnode: {format: {ext4: {customOptions: [-m, 0]}}}\n', {
    under: { node: main.input.node },
  });
  assert.deepEqual(value.node, {
    mount: { mount_flags: ['noatime', '$x'] },
    format: { ext4: { customOptions: ['-m', '0'] }, xfs: { customOptions: ['-K'] } },
  });
});

test('problems of the main file are told as such, its unknown keys are not told again', () => {
  const under = { node: { mount: { mount_flags: {}, unknown: 1 } } };
  assert.deepEqual(problemsOf('driver: demo\n', { under }), [
    'f.yaml:1:1: error: expected mount options separated by commas at node.mount.mount_flags, found a map (this comes from the main file)',
  ]);
});

test('capability lists: unknown names are refused, UNKNOWN means nothing', () => {
  const list = (name: string) => `driver: demo\nservice: {controller: {capabilities: {rpc: [${name}]}}}\n`;
  assert.deepEqual(advertisedFrom(load(list('UNKNOWN, GET_VOLUME')).value).controller, ['GET_VOLUME']);
  assert.deepEqual(advertisedFrom(load('driver: demo\n').value), {
    plugin: undefined,
    expansion: undefined,
    controller: undefined,
    node: undefined,
  });
  assert.match(
    problemsOf(list('GET_VOLUMES'))[0] ?? '',
    /expected one of "CREATE_DELETE_VOLUME", .* did you mean "GET_VOLUME"\?$/,
  );
});

test('mount flags: commas within quotes do not separate', () => {
  const { value } = load(`driver: demo\nnode: {mount: {mount_flags: 'ro, context="a:c1,c2",,vers=4.2'}}\n`);
  assert.deepEqual(value.node?.mount?.mount_flags, ['ro', 'context="a:c1,c2"', 'vers=4.2']);
});

test('an empty section of the kind that example files have is a section that is not set', () => {
  assert.deepEqual(load('driver: demo\ninstance_id:\nstorage:\nservice:\n  identity:\nnode:\n').value, {
    driver: 'demo',
    service: {},
  });
});

test('a schema that throws a call error gives a configuration error', () => {
  const throwing = v.pipe(
    v.object({ driver: v.string() }),
    v.transform(() => {
      throw new CallError('INVALID_ARGUMENT', 'a size it is not');
    }),
  );
  assert.throws(() => parseConfig('driver: x', 'f.yaml', () => throwing, { env: {} }), /f\.yaml:1:1: a size it is not/);
});

test('reading files', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'config-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = (name: string) => join(folder, name);
  const failure = async (name: string) => {
    const error: unknown = await loadConfig(file(name), schemaFor, { env: {} }).catch((one: unknown) => one);
    assert.ok(error instanceof ConfigError, String(error));
    return error;
  };
  await writeFile(file('good.yaml'), '\uFEFFdriver: demo\n');
  await symlink('good.yaml', file('link.yaml'));
  await symlink('loop.yaml', file('loop.yaml'));
  await mkdir(file('folder.yaml'));
  await writeFile(file('big.yaml'), `driver: demo\n#${' '.repeat(1024 * 1024)}`);
  await writeFile(file('largest.yaml'), `driver: demo\n#${' '.repeat(1024 * 1024 - 14)}`);
  await writeFile(file('binary.yaml'), Buffer.from([0xff, 0xfe, 0x00]));

  for (const name of ['good.yaml', 'link.yaml', 'largest.yaml']) {
    assert.equal((await loadConfig(file(name), schemaFor, { env: {} })).driver, 'demo');
  }
  const missing = await failure('missing.yaml');
  assert.equal(missing.message, `${file('missing.yaml')}: cannot read the configuration: there is no such file`);
  assert.equal(errnoOf(missing.cause), 'ENOENT');
  assert.match((await failure('folder.yaml')).message, /it is a folder/);
  assert.match((await failure('loop.yaml')).message, /round in circles/);
  assert.match((await failure('big.yaml')).message, /larger than 1 MiB/);
  assert.match((await failure('binary.yaml')).message, /not UTF-8/);
  assert.match((await failure('bad\0name')).message, /cannot read the configuration/);
  await promisify(execFile)('mkfifo', [file('pipe.yaml')]);
  assert.match((await failure('pipe.yaml')).message, /not a regular file/);
  await writeFile(file('private.yaml'), 'driver: demo\n', { mode: 0 });
  await asNobody(async () => assert.match((await failure('private.yaml')).message, /may not read/));
});

/** Root may read everything: runs `work` without that right. */
async function asNobody(work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

/** Runs a text through the loader and checks what is promised for any text. */
function neverCrashes(text: string): void {
  const lines = text.split('\n');
  const check = (problems: ConfigError['problems']) => {
    for (const { line, column, message } of problems) {
      assert.ok(line >= 1 && line <= lines.length, `line ${line}`);
      assert.ok(column >= 1 && column <= (lines[line - 1] ?? '').length + 1, `column ${column} of line ${line}`);
      assert.doesNotMatch(message, /\n/);
    }
  };
  try {
    check(load(text, { env: { A: '[[1]]', B: 'x' } }).warnings);
  } catch (error) {
    assert.ok(error instanceof ConfigError, error instanceof Error ? error.stack : String(error));
    assert.ok(error.problems.some((problem) => problem.severity === 'error'));
    check(error.problems);
  }
}

test('property: any text is loaded or refused with places within it', () => {
  const yamlish = fc
    .array(
      fc.constantFrom(
        ...[
          'a',
          'driver',
          'demo',
          'storage',
          ':',
          ': ',
          '\n',
          '\n  ',
          '\n- ',
          '- ',
          '? ',
          '&a ',
          '*a',
          '<<: ',
          '{',
          '}',
          '[',
          ']',
          ',',
        ],
        ...[
          '"',
          "'",
          '|\n',
          '>-\n',
          '#',
          '!!str ',
          '!x ',
          '---\n',
          '...\n',
          '%YAML 1.1\n',
          '\t',
          '\r\n',
          '$A',
          '${B}',
          '0x1f',
          '~',
          '\u0000',
          '😀',
        ],
      ),
      { maxLength: 40 },
    )
    .map((parts) => parts.join(''));
  fc.assert(fc.property(fc.string({ unit: 'binary' }), neverCrashes), { numRuns: 150 });
  fc.assert(fc.property(yamlish, neverCrashes), { numRuns: 300 });
  fc.assert(
    fc.property(yamlish, (text) => neverCrashes(`driver: demo\n${text}`)),
    { numRuns: 300 },
  );
});

test('property: any data under any known key is loaded or refused with places within it', () => {
  const keys = fc.constantFrom(
    'driver',
    'instance_id',
    'csi',
    'service',
    'node',
    '_private',
    'proxy',
    'storage',
    'host',
    'port',
    'mode',
    'cli',
  );
  const values = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue(),
      fc.dictionary(keys, tie('node')),
      fc.array(tie('node'), { maxLength: 3 }),
    ),
  })).node;
  fc.assert(
    fc.property(fc.dictionary(keys, values), (data) =>
      neverCrashes(JSON.stringify({ driver: 'demo', ...data }, null, 1)),
    ),
    { numRuns: 300 },
  );
});
