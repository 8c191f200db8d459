#!/usr/bin/env node
/**
 * A stand-in for kopia's command line (https://kopia.io/docs/reference/command-line/) with a repository of plain files. What the real one would not
 * accept ends with its error. The repository is the folder that the token names: base64 of `{"path":…,"password":…}`.
 */
import { createHash, randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const fail = (message) => {
  process.stderr.write(`kopia: error: ${message}\n`);
  process.exit(1);
};

/** Long flags by command; true: takes a value, 'many': may be repeated. */
const commands = {
  'repository connect from-config': {
    flags: {
      'override-hostname': true,
      'override-username': true,
      token: true,
      'token-file': true,
      'token-stdin': false,
    },
    args: 0,
  },
  'snapshot list': {
    flags: { json: false, all: false, 'storage-stats': false, delta: false, tags: 'many', incomplete: false },
    args: 1,
  },
  'snapshot create': { flags: { json: false, tags: 'many', pin: 'many', description: true }, args: 1 },
  'snapshot restore': { flags: { 'write-sparse-files': false }, args: 2 },
  'snapshot delete': { flags: { delete: false }, args: 1 },
};
const globals = { 'log-level': true };

/** As kingpin does: commands are words, flags may stand between and after them, and a flag must belong to a command that was named. */
function parse(argv) {
  const words = [];
  const rest = [];
  for (let at = 0; at < argv.length; at++) {
    if (!argv[at].startsWith('--')) {
      const candidate = [...words, argv[at]].join(' ');
      const known = Object.keys(commands).some((name) => name === candidate || name.startsWith(`${candidate} `));
      if (known) words.push(argv[at]);
      else rest.push({ arg: argv[at] });
      continue;
    }
    const [name, inline] = argv[at].slice(2).split(/=(.*)/s);
    const kind = Object.assign({}, globals, ...Object.values(commands).map((one) => one.flags))[
      name.replace(/^no-/, '')
    ];
    if (kind === undefined) fail(`unknown long flag '--${name}', try --help`);
    rest.push({ flag: name, value: kind ? (inline ?? argv[++at]) : true });
  }
  const name = words.join(' ');
  const command = commands[name];
  if (!command) fail(`expected command but got ${JSON.stringify(argv[words.length] ?? '')}, try --help`);
  const flags = {};
  const args = [];
  for (const { arg, flag, value } of rest) {
    if (flag === undefined) args.push(arg);
    else {
      const kind = { ...globals, ...command.flags }[flag.replace(/^no-/, '')];
      if (kind === undefined) fail(`unknown long flag '--${flag}', try --help`);
      if (value === undefined) fail(`expected argument for flag '--${flag}'`);
      if (flag in flags && kind !== 'many') fail(`flag '${flag}' cannot be repeated`);
      flags[flag] = kind === 'many' ? [...(flags[flag] ?? []), value] : value;
    }
  }
  if (args.length > command.args) fail(`unexpected ${args[command.args]}, try --help`);
  return { name, flags, args };
}

const {
  KOPIA_CONFIG_PATH: config,
  KOPIA_CACHE_DIRECTORY: cache,
  KOPIA_LOG_DIR: logs,
  KOPIA_CHECK_FOR_UPDATES: updates,
} = process.env;
if (!config || !cache || !logs || updates !== 'false')
  fail('the stand-in wants private folders and no look for updates');

function open() {
  if (!existsSync(config))
    fail('open repository: repository is not connected, see https://kopia.io/docs/repositories/');
  const found = JSON.parse(readFileSync(config, 'utf8'));
  return {
    ...found,
    all: () =>
      readdirSync(found.path)
        .filter((one) => one.endsWith('.json'))
        .map((one) => JSON.parse(readFileSync(join(found.path, one), 'utf8'))),
  };
}

function tagMap(tags = []) {
  return Object.fromEntries(
    tags.map((tag) => {
      const at = tag.indexOf(':');
      if (at < 1) fail(`invalid tag format (${tag}). Requires <key>:<value>`);
      return [`tag:${tag.slice(0, at)}`, tag.slice(at + 1)];
    }),
  );
}

const steps = {
  'repository connect from-config'({ flags }) {
    if (flags.token !== undefined) fail('the stand-in wants the token on standard input');
    if (!flags['token-stdin']) fail('either --file, --token-file, --token-stdin or --token must be provided');
    const text = readFileSync(0, 'utf8').trim();
    let token;
    try {
      token = JSON.parse(Buffer.from(text, 'base64').toString('utf8'));
    } catch {
      fail(`error getting storage: invalid token: unable to decode token: ${text}`);
    }
    if (!existsSync(token.path)) fail(`error connecting to repository: can't connect to storage: ${token.path}`);
    if (readFileSync(join(token.path, 'kopia.password'), 'utf8') !== token.password) {
      fail('error connecting to repository: invalid repository password');
    }
    mkdirSync(dirname(config), { recursive: true });
    const identity = { host: flags['override-hostname'], userName: flags['override-username'] };
    writeFileSync(config, JSON.stringify({ path: token.path, identity }), { mode: 0o600 });
    process.stderr.write('Connected to repository.\n');
  },
  'snapshot list'({ flags, args }) {
    const { all, identity } = open();
    const wanted = Object.entries(tagMap(flags.tags));
    const [user, host, path] = args[0]?.split(/@|:(.*)/s) ?? [];
    const shown = all()
      .filter((one) => flags.all || (one.source.host === identity.host && one.source.userName === identity.userName))
      .filter(
        (one) => !args[0] || (one.source.host === host && one.source.userName === user && one.source.path === path),
      )
      .filter((one) => wanted.every(([name, value]) => one.tags?.[name] === value))
      .sort((a, b) => (a.startTime < b.startTime ? -1 : 1));
    if (flags.json) process.stdout.write(`${JSON.stringify(shown)}\n`);
  },
  'snapshot create'({ flags, args }) {
    const { path, identity } = open();
    const from = resolve(args[0]);
    if (!existsSync(from)) fail(`unable to get local filesystem entry: lstat ${from}: no such file or directory`);
    const id = randomBytes(16).toString('hex');
    const startTime = new Date().toISOString();
    cpSync(from, join(path, id), { recursive: true, preserveTimestamps: true });
    const size = readdirSync(from, { recursive: true })
      .map((one) => statSync(join(from, one)))
      .reduce((sum, one) => sum + (one.isFile() ? one.size : 0), 0);
    const manifest = {
      id,
      source: { ...identity, path: from },
      description: '',
      startTime,
      endTime: new Date().toISOString(),
      stats: { totalSize: size, errorCount: 0 },
      rootEntry: {
        name: 'v',
        type: 'd',
        obj: `k${createHash('md5').update(id).digest('hex')}`,
        summ: { size, files: 1, numFailed: 0 },
      },
      tags: tagMap(flags.tags),
      pins: flags.pin ?? [],
    };
    const failed = existsSync(join(from, 'unreadable'));
    if (failed) manifest.rootEntry.summ.numFailed = 1;
    writeFileSync(join(path, `${id}.json`), JSON.stringify(manifest));
    if (failed) fail('Found 1 fatal error(s) while snapshotting: unreadable: permission denied');
    if (flags.json) process.stdout.write(`${JSON.stringify(manifest)}\n`);
  },
  'snapshot restore'({ args }) {
    const { path } = open();
    if (!existsSync(join(path, `${args[0]}.json`)))
      fail(`unable to get filesystem entry: invalid content hash: ${args[0]}`);
    cpSync(join(path, args[0]), args[1], { recursive: true, preserveTimestamps: true });
  },
  'snapshot delete'({ flags, args }) {
    const { path } = open();
    if (!existsSync(join(path, `${args[0]}.json`))) fail(`no snapshots matched ${args[0]}`);
    if (!flags.delete) fail('this would delete the snapshot, pass --delete to do it');
    rmSync(join(path, args[0]), { recursive: true });
    rmSync(join(path, `${args[0]}.json`));
  },
};

const parsed = parse(process.argv.slice(2));
steps[parsed.name](parsed);
