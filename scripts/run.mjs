/**
 * `node scripts/run.mjs <task> [argument…]` runs scripts/<task>.ts with the pinned Node.js, and installs the packages before when they are
 * missing or not the ones of package-lock.json. It has to work with any Node.js that an npm can be expected to come with, so it is plain
 * JavaScript and imports nothing that is installed.
 */
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { join } from 'node:path';

const repository = join(import.meta.dirname ?? '.', '..');

function main() {
  if (!atLeast(process.versions.node, 20, 11))
    fail(`Node.js ${process.versions.node} is too old: 20.11 or newer is needed`);
  const [task, ...args] = process.argv.slice(2);
  const script = join(repository, 'scripts', `${task}.ts`);
  if (!task || !/^[a-z]+$/.test(task) || !existsSync(script))
    fail(`there is no task "${task ?? ''}"; there are: ${tasks().join(', ')}`);
  if (!installed()) install();
  run(pinnedNode(), [script, ...args]);
}

function tasks() {
  return readdirSync(join(repository, 'scripts'))
    .filter((name) => /^[a-z]+\.ts$/.test(name))
    .map((name) => name.slice(0, -3));
}

/** Compares what npm has noted about node_modules with the lock file. File times say nothing: npm writes the two in either order. */
function installed() {
  const wanted = readPackages('package-lock.json');
  const present = readPackages('node_modules/.package-lock.json');
  if (!present) return false;
  return Object.entries(wanted ?? {}).every(([path, { version, optional }]) => {
    if (path === '') return true;
    const found = present[path];
    return found ? found.version === version && existsSync(join(repository, path)) : optional === true;
  });
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(join(repository, path), 'utf8')).packages;
  } catch {
    return undefined;
  }
}

/**
 * Not by `npm ci`, which demands that the lock file names the packages of every platform: a registry that has only those of Linux is enough.
 * Versions and checksums are those of the lock file all the same, and it is not written.
 */
function install() {
  console.error('Installing the packages of package-lock.json into node_modules (npm install, once; about 500 MB)');
  // No package here needs its install script, and a question about them would stop a machine that has nobody to answer.
  const args = [
    'install',
    '--no-save',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--include=dev',
    '--include=optional',
  ];
  const options = { cwd: repository, stdio: ['ignore', 'inherit', 'inherit'] };
  const { status, error } = spawnSync('npm', [...args, '--loglevel=error'], options);
  if (error) fail(`npm cannot be run: ${error.message}`);
  if (status !== 0) fail('npm could not install them; its message is above');
  if (!installed()) fail('what npm installed is not what package-lock.json says; does that fit package.json?');
}

/** The Node.js that is installed with the packages, or the running one where that is missing and this one can run TypeScript. */
function pinnedNode() {
  const path = join(repository, `node_modules/node-linux-${process.arch}/bin/node`);
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    if (atLeast(process.versions.node, 22, 18)) return process.execPath;
    return fail(`${path} is missing, and Node.js ${process.versions.node} is older than 22.18, which runs TypeScript`);
  }
}

/** @returns {never} */
function run(program, args) {
  const child = spawn(program, args, { cwd: process.cwd(), stdio: 'inherit' });
  child.on('error', (error) => fail(`${program} cannot be run: ${error.message}`));
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT']) {
    process.on(signal, () => {
      // A terminal sends these two to every process of the group, the child too; a second one would mean "at once".
      const fromTerminal = process.stdin.isTTY && (signal === 'SIGINT' || signal === 'SIGQUIT');
      if (!fromTerminal) child.kill(signal);
    });
  }
  child.on('exit', (code, signal) => {
    process.exit(signal ? 128 + osConstants.signals[signal] : (code ?? 1));
  });
}

function atLeast(version, major, minor) {
  const [ours = 0, ourMinor = 0] = version.split('.').map(Number);
  return ours > major || (ours === major && ourMinor >= minor);
}

/** @returns {never} */
function fail(message) {
  console.error(`run: ${message}`);
  process.exit(1);
}

main();
