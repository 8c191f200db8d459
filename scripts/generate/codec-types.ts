/** The TypeScript side of the codec. */
import protobuf from 'protobufjs';

const preamble = `import type { Reader, Writer } from 'protobufjs/minimal.js';

/** What \`encode\` and \`create\` take: every field may be left out. */
export type Init<T> = T extends readonly (infer Element)[]
  ? readonly Init<Element>[]
  : T extends Uint8Array | string | number | boolean | undefined
    ? T
    : { readonly [Key in keyof T]?: Init<T[Key]> | undefined };

/**
 * One message on the wire. What \`decode\` gives has every scalar, list and map, set or not; a message that was not sent is undefined. The
 * default values of scalars are on the prototype: spreading or \`Object.keys\` shows only what was sent. Fields and enum values that are not
 * known are kept, and encoded again. 64-bit integers are numbers: one that is not \`Number.isSafeInteger\` has lost digits.
 */
export interface Codec<T> {
  create(init?: Init<T>): T;
  encode(message: Init<T>, writer?: Writer): Writer;
  /** Throws for bytes that are not such a message. */
  decode(bytes: Reader | Uint8Array): T;
}
`;

const scalars: Readonly<Record<string, string>> = {
  string: 'string',
  bool: 'boolean',
  int32: 'number',
  int64: 'number',
};

const wellKnown: Readonly<Record<string, string>> = {
  '.google.protobuf.BoolValue': '{ value: boolean }',
  '.google.protobuf.Int64Value': '{ value: number }',
  '.google.protobuf.StringValue': '{ value: string }',
  '.google.protobuf.Timestamp': '{ seconds: number; nanos: number }',
};

/** csi.d.ts: for each message an interface and a {@link Codec} of one name; for each enum its numbers by name and names by number. */
export function codecTypes(api: protobuf.Namespace): string {
  const types = api.nestedArray.filter(isType);
  const values = types.map((one) => `\nexport const ${one.name}: ${valueType(one, '')};\n`);
  return preamble + types.map((one) => declaration(one, '')).join('') + values.join('');
}

function isType(one: protobuf.ReflectionObject): one is protobuf.Type | protobuf.Enum {
  return one instanceof protobuf.Type || one instanceof protobuf.Enum;
}

function declaration(one: protobuf.Type | protobuf.Enum, indent: string): string {
  if (one instanceof protobuf.Enum) return `\n${indent}export type ${one.name} = number;\n`;
  const fields = one.fieldsArray.map((field) => `${indent}  ${fieldDeclaration(field)};\n`);
  const choices = one.oneofsArray.map((choice) => `${indent}  ${choiceDeclaration(choice)};\n`);
  const body = fields.concat(choices).join('');
  const inner = one.nestedArray.filter(isType).map((nested) => declaration(nested, `${indent}  `));
  const namespace = inner.length === 0 ? '' : `${indent}export namespace ${one.name} {${inner.join('')}${indent}}\n`;
  return `\n${indent}export interface ${one.name} {\n${body}${indent}}\n${namespace}`;
}

/** Types of a name merge with a constant of that name only while they hold no constants themselves, so the values have a shape apart. */
function valueType(one: protobuf.Type | protobuf.Enum, indent: string): string {
  const lines =
    one instanceof protobuf.Enum
      ? [...Object.entries(one.values).map(([name, id]) => `${name}: ${id}`), '[id: number]: string | undefined']
      : one.nestedArray.filter(isType).map((nested) => `${nested.name}: ${valueType(nested, `${indent}  `)}`);
  const members = lines.map((line) => `${indent}  readonly ${line};\n`).join('');
  const shape = `{\n${members}${indent}}`;
  if (one instanceof protobuf.Enum) return shape;
  const codec = `Codec<${one.fullName.replace('.csi.v1.', '')}>`;
  return members === '' ? codec : `${codec} & ${shape}`;
}

function fieldDeclaration(field: protobuf.Field): string {
  const type = typeOf(field);
  if (field instanceof protobuf.MapField) return `${field.name}: { [key: string]: ${type} }`;
  if (field.repeated) return `${field.name}: ${type.includes(' ') ? `(${type})` : type}[]`;
  if (field.resolvedType instanceof protobuf.Type) return `${field.name}?: ${type} | undefined`;
  return `${field.name}: ${type}`;
}

/** Which field of a oneof is set. Derived: it is read, never written. */
function choiceDeclaration(choice: protobuf.OneOf): string {
  return `readonly ${choice.name}?: ${choice.oneof.map((name) => `'${name}'`).join(' | ')} | undefined`;
}

function typeOf(field: protobuf.Field): string {
  const { resolvedType } = field;
  const type = resolvedType
    ? (wellKnown[resolvedType.fullName] ?? resolvedType.fullName.replace('.csi.v1.', ''))
    : scalars[field.type];
  if (type === undefined) throw new Error(`${field.fullName}: no TypeScript type for ${field.type}`);
  return type;
}
