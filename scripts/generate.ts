/** Makes src/generated from proto/csi.proto: the codec, its types, the service table and the list of secret fields. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import protobuf from 'protobufjs';
import pbjs from 'protobufjs-cli/pbjs.js';
import { codecTypes } from './generate/codec-types.ts';
import { secretsModule, secretsTypes } from './generate/secrets.ts';
import { servicesModule, servicesTypes } from './generate/services.ts';
import { repository } from './lib/repository.ts';
import { writeChanged } from './lib/write-changed.ts';

const proto = join(repository, 'proto/csi.proto');
const output = join(repository, 'src/generated');

/** Writes the files whose content has changed. Others keep their times, so that what is made from them stays fresh. */
export async function generate(): Promise<void> {
  const root = loadProto();
  const api = root.lookup('csi.v1');
  if (!(api instanceof protobuf.Namespace)) throw new Error('proto/csi.proto has no package csi.v1');
  const header = '// Made from proto/csi.proto by `npm run generate`.\n';
  const files = {
    'csi.js': header + (await codecModule(root, api)),
    'csi.d.ts': header + codecTypes(api),
    'services.js': header + servicesModule(api),
    'services.d.ts': header + servicesTypes(api),
    'secrets.js': header + secretsModule(api),
    'secrets.d.ts': header + secretsTypes(),
  };
  await mkdir(output, { recursive: true });
  for (const [name, content] of Object.entries(files)) await writeChanged(join(output, name), content);
}

function loadProto(): protobuf.Root {
  const root = new protobuf.Root();
  const resolve = root.resolvePath.bind(root);
  const library = join(repository, 'node_modules/protobufjs');
  root.resolvePath = (origin, target) =>
    target.startsWith('google/') ? join(library, target) : (resolve(origin, target) ?? null);
  root.loadSync(proto);
  root.resolveAll();
  return root;
}

/** Static code by pbjs for the messages alone: the definitions of options and services have no part at run time. */
async function codecModule(root: protobuf.Root, api: protobuf.Namespace): Promise<string> {
  const description = root.toJSON();
  const messages = members(description, 'csi', 'v1');
  for (const object of api.nestedArray) {
    if (!(object instanceof protobuf.Type || object instanceof protobuf.Enum)) delete messages[object.name];
  }
  const wellKnown = members(description, 'google', 'protobuf');
  for (const name of Object.keys(wellKnown)) {
    if (!['BoolValue', 'Int64Value', 'StringValue', 'Timestamp'].includes(name)) delete wellKnown[name];
  }
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-'));
  try {
    const input = join(folder, 'messages.json');
    await writeFile(input, JSON.stringify(description));
    return withSettings(await compile(input)) + namedExports(api);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function compile(input: string): Promise<string> {
  const flags = '--force-number --no-verify --no-convert --no-delimited --no-typeurl --no-service --no-comments';
  const run = promisify<string[], string | undefined>(pbjs.main);
  const code = await run(['-t', 'static-module', '-w', 'esm', '--es6', ...flags.split(' '), input]);
  if (!code) throw new Error('pbjs made no code');
  return code;
}

/** What a package holds. */
function members(description: protobuf.INamespace, ...path: string[]): Record<string, protobuf.AnyNestedObject> {
  let found = description.nested;
  for (const name of path) {
    const inner = found?.[name];
    found = inner && 'nested' in inner ? inner.nested : undefined;
  }
  if (!found) throw new Error(`proto/csi.proto does not define or import ${path.join('.')}`);
  return found;
}

/**
 * Settings of the protobufjs runtime, before any message is defined: unknown fields are kept, and 64-bit integers are numbers even where the
 * `long` package can be found. A message that was not sent is undefined, as elsewhere in the program, instead of null.
 */
function withSettings(code: string): string {
  const importLine = 'import $protobuf from "protobufjs/minimal.js";\n';
  if (!code.includes(importLine)) throw new Error('pbjs writes its import in another way now');
  const settings = ['Reader.discardUnknown = false', 'util.Long = null', 'configure()'];
  const prelude = settings.map((one) => `$protobuf.${one};\n`).join('');
  return code.replace(importLine, `${importLine}\n${prelude}`).replace(/(\.prototype\.\w+ = )null;/g, '$1$undefined;');
}

function namedExports(api: protobuf.Namespace): string {
  const names = api.nestedArray.filter((one) => one instanceof protobuf.Type || one instanceof protobuf.Enum);
  return `\nexport const {\n${names.map((one) => `  ${one.name},\n`).join('')}} = csi.v1;\n`;
}

if (process.argv[1] === import.meta.filename) await generate();
