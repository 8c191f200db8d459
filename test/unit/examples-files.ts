/** What is found in the files of examples/: configurations and command lines of the program, wherever they are written down. */
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { repository } from '../../scripts/lib/repository.ts';

export interface ExampleFile {
  /** Its path from the repository. */
  readonly file: string;
  readonly text: string;
}

/** A configuration or connection file, or one that is written inside another file. */
export interface Configuration {
  readonly where: string;
  readonly text: string;
}

/** Arguments as the program would get them. */
export interface CommandLine {
  readonly where: string;
  readonly args: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;

export async function exampleFiles(): Promise<readonly ExampleFile[]> {
  const files: string[] = [];
  for await (const entry of glob('examples/**/*', { cwd: repository, withFileTypes: true })) {
    if (entry.isFile()) files.push(join(entry.parentPath, entry.name).slice(repository.length + 1));
  }
  return Promise.all(
    files.sort().map(async (file) => ({ file, text: await readFile(join(repository, file), 'utf8') })),
  );
}

/** The documents of a YAML or JSON file, undefined for other files. Throws what is wrong with the text, warnings included. */
export function documentsOf({ file, text }: ExampleFile): readonly Json[] | undefined {
  if (file.endsWith('.json')) return [JSON.parse(text)];
  if (!/\.ya?ml$/.test(file)) return undefined;
  return [...parseAllDocuments(text, { uniqueKeys: true })].map((document) => {
    for (const problem of [...document.errors, ...document.warnings]) throw problem;
    return document.toJS() as Json;
  });
}

export function configurationsOf(example: ExampleFile): readonly Configuration[] {
  const { file, text } = example;
  const documents = documentsOf(example);
  if (documents === undefined) return file.endsWith('.hcl') ? heredocs(example) : [];
  if (documents.some(isConfiguration)) return [{ where: file, text }];
  const inside = documents.flatMap((document) =>
    [...valuesIn(document)].flatMap(({ path, value }) =>
      typeof value === 'string' && /^driver:/m.test(value) ? [{ where: `${file}: ${path}`, text: value }] : [],
    ),
  );
  return inside;
}

/** Manifests of Kubernetes have a `driver` too. */
function isConfiguration(document: Json | null): boolean {
  return typeof document?.driver === 'string' && document.kind === undefined;
}

function heredocs({ file, text }: ExampleFile): Configuration[] {
  return [...text.matchAll(/<<-?"?(\w+)"?\n([\s\S]*?)\n[ \t]*\1$/gm)].flatMap(([, , body = ''], index) => {
    const lines = body.split('\n');
    const indent = Math.min(...lines.filter((line) => line.trim() !== '').map((line) => line.search(/\S/)));
    const plain = lines.map((line) => line.slice(indent)).join('\n');
    if (!/^driver:/m.test(plain)) return [];
    // `$${` is a literal `${` there.
    return [{ where: `${file}: heredoc ${index + 1}`, text: plain.replaceAll('$${', '${') }];
  });
}

export function commandLinesOf(example: ExampleFile): readonly CommandLine[] {
  const { file, text } = example;
  if (/\.(service|socket)$/.test(file)) return [...unitCommands(example)];
  if (file.endsWith('.hcl')) return [...jobCommands(example)];
  if (file.endsWith('.md')) return [...shellCommands(text)].map((args) => ({ where: file, args }));
  return (documentsOf(example) ?? []).flatMap((document) =>
    [...valuesIn(document)].flatMap(({ path, value }) => containerCommands(`${file}: ${path}`, value)),
  );
}

/** Programs' paths end with the name, images begin with it. */
const isProgram = (value: unknown) => typeof value === 'string' && /(^|\/)switchboard$/.test(value);
const isImage = (value: unknown) => typeof value === 'string' && /(^|\/)switchboard(:|$)/.test(value);
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

function* unitCommands({ file, text }: ExampleFile): Iterable<CommandLine> {
  for (const [, command = ''] of text.matchAll(/^Exec\w+=[-@:+!]*(.*)$/gm)) {
    const [program, ...args] = command.trim().split(/\s+/);
    if (isProgram(program)) yield { where: file, args };
  }
}

/** `args = [ … ]` in the `config` block of a task; jobs of this folder run nothing else with options. */
function* jobCommands({ file, text }: ExampleFile): Iterable<CommandLine> {
  for (const [, list = ''] of text.matchAll(/^\s*args\s*=\s*\[([^\]]*)\]/gm)) {
    const args = [...list.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, one = '']) => one);
    if (args[0]?.startsWith('-') && args[0].length > 2) yield { where: file, args };
  }
}

/** A container of a manifest or of a compose file, a probe of one, the description of a plugin. */
function containerCommands(where: string, value: unknown): CommandLine[] {
  if (isTexts(value)) {
    const at = value.findIndex(isProgram);
    return at === 0 || (at === 1 && /^CMD/.test(value[0] ?? '')) ? [{ where, args: value.slice(at + 1) }] : [];
  }
  if (!isObject(value) || !isImage(value.image)) return [];
  return [value.args, value.command].filter(isTexts).flatMap((args) => (isProgram(args[0]) ? [] : [{ where, args }]));
}

/** Lines of ```sh blocks that begin with the program's name, continuation lines joined. */
function* shellCommands(text: string): Iterable<readonly string[]> {
  for (const [, block = ''] of text.matchAll(/^```sh\n([\s\S]*?)^```/gm)) {
    for (const line of block.replaceAll(/\\\n\s*/g, '').split('\n')) {
      const [program, ...args] = line
        .replace(/\s+#.*$|[|>&;].*$/g, '')
        .trim()
        .split(/\s+/);
      if (program === 'switchboard' && args.length > 0) yield args;
    }
  }
}

/** Every value below, itself included, with its path. */
export function* valuesIn(value: unknown, path = ''): Iterable<{ path: string; value: unknown }> {
  yield { path, value };
  if (typeof value !== 'object' || value === null) return;
  for (const [key, one] of Object.entries(value)) yield* valuesIn(one, path === '' ? key : `${path}.${key}`);
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
