/**
 * Stands in for oneclient and mount.objectivefs: takes their documented command lines and environment and nothing else, and mounts an empty file
 * system that is really FUSE, with a daemon that can be killed. `node fuse-program.ts FOLDER PROGRAM ARGUMENTS…`; what it was told is in FOLDER.
 */
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, closeSync, existsSync, openSync, readSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const [folder = '', program = '', ...args] = process.argv.slice(2);
/** The descriptor of /dev/fuse in the processes that inherit it. */
const device = 3;

if (program === 'daemon') serve();
else main();

function main(): void {
  // What the runner sets, and the shell that starts this.
  const { PATH: _path, LC_ALL: _locale, PWD: _place, ...env } = process.env;
  appendFileSync(`${folder}/calls`, `${JSON.stringify({ program, args, env })}\n`);
  if (existsSync(`${folder}/refuse`)) fail(1, 'the server refuses');
  const { source, place, options } = program === 'oneclient' ? oneclient(env) : objectivefs(env);
  if (!statSync(place, { throwIfNoEntry: false })?.isDirectory()) fail(1, `${place} is no directory`);
  const fuse = openSync('/dev/fuse', 'r+');
  const stdio = ['ignore', 'ignore', 'inherit', fuse] as const;
  const own = [`fd=${device}`, 'rootmode=40000', 'user_id=0', 'group_id=0', 'allow_other', ...options];
  const type = program === 'oneclient' ? 'fuse.oneclient' : 'fuse.objectivefs';
  const { status } = spawnSync('mount', ['-i', '-t', type, '-o', own.join(','), source, place], { stdio: [...stdio] });
  if (status !== 0) fail(1, 'it cannot be mounted');
  const daemon = spawn(process.execPath, [fileURLToPath(import.meta.url), folder, 'daemon'], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', fuse],
  });
  writeFileSync(`${folder}/daemon`, String(daemon.pid));
  daemon.unref();
  closeSync(fuse);
}

interface Mounting {
  readonly source: string;
  readonly place: string;
  readonly options: readonly string[];
}

function oneclient(env: NodeJS.ProcessEnv): Mounting {
  const rest = [...args];
  const options: string[] = [];
  let host: string | undefined;
  while (rest.length > 1) {
    const flag = rest.shift();
    if (flag === '-H') host = rest.shift();
    else if (flag === '--space' || flag === '--space-id') rest.shift();
    else if (flag === '-o') options.push(...(rest.shift() ?? '').split(','));
    else if (flag !== '--force-proxy-io') fail(1, `unrecognised option '${flag}'`);
  }
  const token = env.ONECLIENT_ACCESS_TOKEN;
  if (!host) fail(1, 'no Oneprovider');
  if (!token || args.some((argument) => argument.includes(token))) fail(1, 'no token, or not where it belongs');
  return { source: 'oneclient', place: rest[0] ?? '', options };
}

function objectivefs(env: NodeJS.ProcessEnv): Mounting {
  const withOptions = args[0] === '-o';
  const [name = '', place = '', ...more] = withOptions ? args.slice(2) : args;
  if (more.length > 0) fail(1, 'usage: mount.objectivefs [-o <opt>[,<opt>]..] <filesystem> <dir>');
  if (env.OBJECTIVEFS_LICENSE?.length !== 24) fail(64, 'admins are not permitted to mount');
  if (!env.OBJECTIVEFS_PASSPHRASE) fail(78, 'no passphrase');
  if (!env.OBJECTSTORE || !env.ACCESS_KEY || !env.SECRET_KEY) fail(1, 'no object store');
  const options = withOptions ? (args[1] ?? '').split(',').filter((option) => option !== 'mt') : [];
  return { source: name.includes('://') ? name : `${env.OBJECTSTORE}${name}`, place, options };
}

function fail(code: number, why: string): never {
  process.stderr.write(`${program}: ${why}\n`);
  process.exit(code);
}

/** Answers the kernel until it is unmounted (linux/fuse.h, version 7.31): one empty directory. */
function serve(): void {
  const buffer = Buffer.alloc(2 ** 21);
  for (;;) {
    try {
      readSync(device, buffer);
    } catch {
      return;
    }
    const answer = answerTo(buffer.readUInt32LE(4));
    if (answer === undefined) continue;
    const header = Buffer.alloc(16);
    const body = typeof answer === 'number' ? Buffer.alloc(0) : answer;
    header.writeUInt32LE(16 + body.length, 0);
    header.writeInt32LE(typeof answer === 'number' ? answer : 0, 4);
    buffer.copy(header, 8, 8, 16);
    writeSync(device, Buffer.concat([header, body]));
  }
}

/** A body, or a negative errno. Undefined: it is not to be answered. */
function answerTo(operation: number): Buffer | number | undefined {
  switch (operation) {
    case 26: // INIT
      return numbers(64, { 0: 7, 4: 31, 20: 2 ** 17, 24: 1 });
    case 3: // GETATTR
      return numbers(104, { 0: 60, 16: 1, 76: 0o40755, 80: 2 });
    case 17: // STATFS
      return numbers(80, { 0: 2 ** 20, 8: 2 ** 19, 16: 2 ** 19, 24: 1000, 32: 900, 40: 4096, 44: 255, 48: 4096 });
    case 27: // OPENDIR
      return Buffer.alloc(16);
    case 28: // READDIR
    case 29: // RELEASEDIR
    case 38: // DESTROY
      return 0;
    case 2: // FORGET
    case 36: // INTERRUPT
    case 42: // BATCH_FORGET
      return undefined;
    case 1: // LOOKUP
      return -2;
    default:
      return -38;
  }
}

function numbers(length: number, values: Readonly<Record<number, number>>): Buffer {
  const body = Buffer.alloc(length);
  for (const [offset, value] of Object.entries(values)) body.writeUInt32LE(value, Number(offset));
  return body;
}
