/** The examples are the documentation that runs: they parse, every key in them is one that the code reads, every option one that it knows. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import { repository } from '../../scripts/lib/repository.ts';
import { parseMainConfig, schemaNamed } from '../../src/cli/main-config.ts';
import { define as defineServe } from '../../src/cli/serve-command.ts';
import { serveSettings } from '../../src/cli/serve-settings.ts';
import type { Shell } from '../../src/cli/shell.ts';
import { parseConfig } from '../../src/config/load.ts';
import { driverTypes } from '../../src/drivers/index.ts';
import { switchboard } from './cli-shell.ts';
import { commandLinesOf, configurationsOf, documentsOf, exampleFiles } from './examples-files.ts';

const examples = await exampleFiles();
const driverNames = [...driverTypes.map(({ name }) => name), 'proxy'];

test('every YAML and JSON file parses', () => {
  const parsed = examples.filter((example) => documentsOf(example) !== undefined);
  assert.ok(parsed.length >= 20, `${parsed.length} files`);
});

for (const { where, text } of examples.flatMap(configurationsOf)) {
  test(`configuration: ${where}`, () => {
    // What is named is there, as far as anybody can say.
    const names = [...text.matchAll(/\$\{?([A-Z_][A-Z0-9_]*)\b/g)].map(([, name = '']) => name);
    const env = Object.fromEntries(names.map((name) => [name, '/set']));
    const isMain = /^driver: proxy$/m.test(text) || /^host:/m.test(text);
    const { warnings } = isMain
      ? parseMainConfig(text, where, env).loaded
      : parseConfig(text, where, schemaNamed, { env, driverNames });
    assert.deepEqual(warnings, []);
  });
}

const machine = { isRoot: true, home: '/root', hostName: 'h', pid: 1, outIsTerminal: false, hasSystemConfig: true };

for (const { where, args } of examples.flatMap(commandLinesOf)) {
  test(`command line: ${where}: switchboard ${args.join(' ')}`, async () => {
    if (args[0]?.startsWith('-') || args[0] === 'serve') {
      const command = quietCommand();
      const { operands, unknown } = command.parseOptions(args[0] === 'serve' ? args.slice(1) : [...args]);
      assert.deepEqual([operands, unknown], [[], []]);
      serveSettings(command.opts(), { CSI_ENDPOINT: 'unix:///csi/csi.sock' }, machine);
      return;
    }
    // The help of the very command says which options there are; whatever it would do is not done.
    const words = args
      .slice(0, args.findIndex((arg) => arg.startsWith('-')) >>> 0)
      .filter((arg) => /^[a-z-]+$/.test(arg));
    const help = await helpOf(words);
    for (const flag of args.filter((arg) => arg.startsWith('-'))) {
      const name = flag.split('=')[0] ?? '';
      assert.match(help, new RegExp(`(^|[\\s,])${name}(?![\\w-])`, 'm'), `there is no ${name}`);
    }
  });
}

function quietCommand(): Command {
  const command = new Command().exitOverride();
  defineServe(command, { env: {}, columns: 100 } as unknown as Shell, { code: 0 });
  return command;
}

/** Of the longest beginning of these words that is a command: the others are arguments. */
async function helpOf(words: readonly string[]): Promise<string> {
  for (let count = words.length; count > 0; count--) {
    const { code, out } = await switchboard([...words.slice(0, count), '--help']);
    if (code === 0 && !(count > 1 && out === (await switchboard([...words.slice(0, count - 1), '--help'])).out))
      return out;
  }
  assert.fail(`there is no command ${words.join(' ')}`);
}

test('every variable of the program is one that it reads', async () => {
  const command = quietCommand();
  const options = command.options.map(({ long }) => long?.replace('--', '').replaceAll('-', '_').toUpperCase());
  const known = new Set(options.map((name) => `SWITCHBOARD_${name}`));
  const elsewhere = ['src/cli/state-directory.ts', 'src/main.ts', 'src/cli/host-name.ts'];
  for (const file of elsewhere) {
    const text = await readFile(join(repository, file), 'utf8').catch(() => '');
    for (const [name] of text.matchAll(/\bSWITCHBOARD_[A-Z_]+[A-Z]\b/g)) known.add(name);
  }
  assert.ok(known.has('SWITCHBOARD_LOG_LEVEL') && known.has('SWITCHBOARD_STATE_DIR'));
  for (const { file, text } of examples) {
    for (const [name] of text.matchAll(/\bSWITCHBOARD_[A-Z_]+[A-Z]\b/g)) assert.ok(known.has(name), `${file}: ${name}`);
  }
});

/** Directives of systemd.exec(5) that give a service a mount namespace of its own. */
const namespacing =
  /^(PrivateTmp|PrivateDevices|ProtectSystem|ProtectHome|ProtectKernel\w+|ProtectControlGroups|ProtectProc|ProtectClock|ReadWritePaths|ReadOnlyPaths|InaccessiblePaths|BindPaths|BindReadOnlyPaths|TemporaryFileSystem|RootDirectory|MountFlags|DynamicUser|DeviceAllow)=/m;

for (const { file, text } of examples.filter(({ file }) => file.endsWith('.service'))) {
  test(`unit: ${file}`, () => {
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1];
    const stopTimeout = Number(/--stop-timeout (\d+)/.exec(value('ExecStart') ?? '')?.[1]);
    assert.ok(Number(value('TimeoutStopSec')) > stopTimeout + 10, 'it is stopped before it has stopped');
    assert.deepEqual([value('Type'), value('NotifyAccess')], ['notify', 'all']);
    if (value('ExecStart')?.includes('--csi-mode controller')) return;
    assert.doesNotMatch(text, namespacing);
    assert.equal(value('KillMode'), 'process');
  });
}
