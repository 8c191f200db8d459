/** `switchboard drivers`: what a connection can be. */
import type { Command } from 'commander';
import { parse } from 'valibot';
import {
  controllerCapabilities,
  expansionCapabilities,
  nodeCapabilities,
  pluginCapabilities,
} from '../core/capabilities.ts';
import type { Driver } from '../core/driver.ts';
import { silentLogger } from '../core/logger.ts';
import { driverType, driverTypes } from '../drivers/index.ts';
import type { DriverType } from '../drivers/type.ts';
import { proxySchema } from '../proxy/config.ts';
import { createProxy } from '../proxy/index.ts';
import { driverFromExample, idleEnvironment } from './driver-from-example.ts';
import { proxyEnvironment } from './environment.ts';
import type { Outcome } from './outcome.ts';
import { details, table } from './output/table.ts';
import type { Shell } from './shell.ts';
import { UsageError } from './usage-error.ts';

const help = `
A connection file names one of these under "driver:". The main file may name one too, or "proxy": then each file of
its folder is a connection.

Examples:
  switchboard drivers
  switchboard drivers local-hostpath`;

interface ShownDriver {
  readonly name: string;
  readonly summary: string;
  readonly capabilities: {
    readonly plugin: readonly string[];
    readonly expansion: readonly string[];
    readonly controller: readonly string[];
    readonly node: readonly string[];
  };
  /** The smallest configuration file, as a value. */
  readonly example: unknown;
}

export function define(drivers: Command, shell: Shell, _outcome: Outcome): void {
  drivers
    .argument('[name]', 'show all about this one')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(async (name: string | undefined, options: { json?: boolean }) => {
      const shown = name === undefined ? await describeAll() : [await describeNamed(name)];
      const colours = shell.outIsTerminal && !shell.env.NO_COLOR;
      if (options.json) shell.out(`${JSON.stringify(name === undefined ? { drivers: shown } : shown[0], null, 2)}\n`);
      else if (name === undefined) shell.out(overview(shown, colours));
      else for (const one of shown) shell.out(await allAbout(one, colours));
    });
}

async function describeAll(): Promise<readonly ShownDriver[]> {
  return [...(await Promise.all(driverTypes.map(describeType))), await describeProxy()];
}

async function describeNamed(name: string): Promise<ShownDriver> {
  const type = driverType(name);
  if (type) return describeType(type);
  if (name === 'proxy') return describeProxy();
  const { closest } = await import('fastest-levenshtein');
  const nearest = closest(name, ['proxy', ...driverTypes.map((one) => one.name)]);
  throw new UsageError(`there is no driver "${name}"`, `Did you mean ${nearest}? "switchboard drivers" lists all.`);
}

async function describeType(type: DriverType): Promise<ShownDriver> {
  const { name, summary, example } = type;
  return describe({ name, summary, example }, await driverFromExample(type));
}

/** Not in the table of drivers, since no connection can be one. */
async function describeProxy(): Promise<ShownDriver> {
  const example = { driver: 'proxy', proxy: { configFolder: '/etc/switchboard/connections' } };
  const facts = { csiName: '', nodeName: 'node', env: {}, run: idleEnvironment.run, log: silentLogger };
  const proxy = createProxy(parse(proxySchema, example), proxyEnvironment(facts));
  const summary = 'each file of a folder is a connection to one of the others; for the main file';
  return describe({ name: 'proxy', summary, example }, proxy);
}

async function describe(
  type: { name: string; summary: string; example: unknown },
  driver: Driver,
): Promise<ShownDriver> {
  const shown = {
    ...type,
    capabilities: {
      plugin: pluginCapabilities(driver),
      expansion: expansionCapabilities(driver),
      controller: controllerCapabilities(driver),
      node: nodeCapabilities(driver),
    },
  };
  await driver.close();
  return shown;
}

const columns: readonly (readonly [string, (driver: ShownDriver['capabilities']) => string | boolean])[] = [
  ['CREATE', ({ controller }) => controller.includes('CREATE_DELETE_VOLUME')],
  ['LIST', ({ controller }) => controller.includes('LIST_VOLUMES')],
  ['SNAPSHOT', ({ controller }) => controller.includes('CREATE_DELETE_SNAPSHOT')],
  ['CLONE', ({ controller }) => controller.includes('CLONE_VOLUME')],
  ['EXPAND', ({ expansion }) => expansion.join(', ').toLowerCase() || false],
  ['CAPACITY', ({ controller }) => controller.includes('GET_CAPACITY')],
  ['TOPOLOGY', ({ plugin }) => plugin.includes('VOLUME_ACCESSIBILITY_CONSTRAINTS')],
];

function overview(drivers: readonly ShownDriver[], colours: boolean): string {
  const cell = (value: string | boolean) => (typeof value === 'string' ? value : value ? 'yes' : '-');
  const rows = drivers.map((driver) => [
    driver.name,
    ...columns.map(([, of]) => cell(of(driver.capabilities))),
    driver.summary,
  ]);
  return table(['DRIVER', ...columns.map(([head]) => head), ''], rows, colours);
}

async function allAbout({ capabilities, ...driver }: ShownDriver, colours: boolean): Promise<string> {
  const { stringify } = await import('yaml');
  const lines = (names: readonly string[]) => names.join('\n') || 'none';
  const text = details(
    [
      ['driver', driver.name],
      ['', driver.summary],
      ['serves', lines([...capabilities.plugin, ...capabilities.expansion.map((mode) => `expansion ${mode}`)])],
      ['controller', lines(capabilities.controller)],
      ['node', lines(capabilities.node)],
    ],
    colours,
  );
  return `${text}\nThe smallest configuration file:\n\n${stringify(driver.example).replaceAll(/^(?=.)/gm, '  ')}`;
}
