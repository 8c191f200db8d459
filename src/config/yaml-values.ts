/** From YAML's nodes to plain values, with the place of each. */
import type { Alias, Node, Pair, Scalar, YAMLMap } from 'yaml';
import { isAlias, isMap, isNode, isScalar, isSeq } from 'yaml';
import type { Path } from './path.ts';
import { atPath, formatPath } from './path.ts';
import type { Problem } from './problem.ts';
import { ConfigError, inFileOrder } from './problem.ts';

/** A map as it stands in a file: texts, numbers, truth values, null, lists and maps. */
export type ConfigMap = Readonly<Record<string, unknown>>;

/** Makes the problem to report at an offset in the text. */
export type ReportAt = (offset: number, message: string, path: Path) => Problem;

/** Offsets in the text. */
export interface Place {
  /** Of the key; of the item itself in lists. */
  readonly key: number;
  readonly value: number;
  /** How a number or truth value is written. */
  readonly written: string | undefined;
}

/** Keys and values in a document, aliases expanded: what stops a few lines of nested aliases from filling the memory. */
const maxNodes = 50_000;
const maxDepth = 64;

interface Reading {
  readonly report: ReportAt;
  readonly problems: Problem[];
  readonly places: Map<string, Place>;
  readonly anchors: Map<string, Node>;
  /** The nodes that are being read: an alias to one of them would never end. */
  readonly open: Set<Node>;
  nodes: number;
}

interface Entry {
  readonly key: Node;
  readonly value: Node | null;
}

/** Reads a whole document. Throws ConfigError with all that is wrong with its keys and aliases. */
export function readValues(root: YAMLMap, report: ReportAt): { value: ConfigMap; places: ReadonlyMap<string, Place> } {
  const reading: Reading = {
    report,
    problems: [],
    places: new Map(),
    anchors: new Map(),
    open: new Set(),
    nodes: 0,
  };
  const value = readValue(reading, root, []) as ConfigMap;
  if (reading.problems.length > 0) throw new ConfigError(inFileOrder(reading.problems));
  return { value, places: reading.places };
}

/** Where a node begins in the text. */
export function offsetOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

function readValue(reading: Reading, node: Node | null, path: Path): unknown {
  if (node === null) return null;
  enter(reading, node, path);
  if (isScalar(node)) return scalarValue(node);
  const target = isAlias(node) ? targetOf(reading, node, path) : node;
  if (!target) return null;
  reading.open.add(target);
  const value = isScalar(target) ? scalarValue(target) : collection(reading, target, path);
  reading.open.delete(target);
  return value;
}

function collection(reading: Reading, node: Node, path: Path): unknown {
  if (isSeq(node)) {
    return (node.items as (Node | null)[]).map((item, index) => {
      return placed(reading, item, offsetOf(item), [...path, index]);
    });
  }
  const found = [...entriesOf(reading, node as YAMLMap, path)];
  return Object.fromEntries(
    found.map(([key, entry]) => [key, placed(reading, entry.value, offsetOf(entry.key), [...path, key])]),
  );
}

function placed(reading: Reading, node: Node | null, key: number, path: Path): unknown {
  const written = writtenOf(isAlias(node) ? reading.anchors.get(node.source) : node);
  reading.places.set(formatPath(path), { key, value: node ? offsetOf(node) : key, written });
  return readValue(reading, node, path);
}

/** The entries of a map; its own ones hide those that come from merge keys, and earlier merged ones later ones. */
function entriesOf(reading: Reading, map: YAMLMap, path: Path): ReadonlyMap<string, Entry> {
  const own = new Map<string, Entry>();
  const merged: Node[] = [];
  for (const pair of map.items as Pair<Node, Node | null>[]) {
    enter(reading, pair.key, path);
    if (isMergeKey(pair.key)) merged.push(...mergeSources(reading, pair, path));
    else addEntry(reading, own, pair, path);
  }
  for (const source of merged) {
    const target = isAlias(source) ? targetOf(reading, source, path) : source;
    if (isMap(target)) for (const [key, entry] of entriesOf(reading, target, path)) addMissing(own, key, entry);
    else if (target) reject(reading, source, 'only maps can be merged with <<', path);
  }
  return own;
}

function addEntry(reading: Reading, own: Map<string, Entry>, pair: Pair<Node, Node | null>, path: Path): void {
  const target = isAlias(pair.key) ? targetOf(reading, pair.key, path) : pair.key;
  if (!isScalar(target)) {
    if (target) reject(reading, pair.key, 'a key must be a text, not a list or map', path);
    return;
  }
  const key = String(target.value);
  const first = own.get(key);
  if (first) {
    const { line } = reading.report(offsetOf(first.key), '', path);
    const message = `the key ${formatPath([key])} is already on line ${line}${atPath(path, 'in')}`;
    reject(reading, pair.key, message, [...path, key]);
  } else own.set(key, pair);
}

function addMissing(own: Map<string, Entry>, key: string, entry: Entry): void {
  if (!own.has(key)) own.set(key, entry);
}

function mergeSources(reading: Reading, pair: Pair<Node, Node | null>, path: Path): readonly Node[] {
  if (!pair.value) return [];
  enter(reading, pair.value, path);
  return isSeq(pair.value) ? (pair.value.items as Node[]) : [pair.value];
}

function targetOf(reading: Reading, alias: Alias, path: Path): Node | undefined {
  const target = reading.anchors.get(alias.source);
  if (!target) reject(reading, alias, `no anchor &${alias.source} before this alias`, path);
  else if (reading.open.has(target)) reject(reading, alias, `the alias *${alias.source} stands for itself`, path);
  else return target;
  return undefined;
}

function enter(reading: Reading, node: Node, path: Path): void {
  const { report } = reading;
  if (path.length > maxDepth)
    throw new ConfigError([report(offsetOf(node), `nested deeper than ${maxDepth} levels`, [])]);
  if (++reading.nodes > maxNodes) {
    throw new ConfigError([report(offsetOf(node), `more than ${maxNodes} values, with all aliases expanded`, [])]);
  }
  if (!isAlias(node)) remember(reading, node);
}

/** An anchor holds from where it is written. Reading an alias meets older anchors again: they do not replace newer ones of the same name. */
function remember(reading: Reading, node: Exclude<Node, Alias>): void {
  if (node.anchor === undefined) return;
  const known = reading.anchors.get(node.anchor);
  if (!known || offsetOf(known) <= offsetOf(node)) reading.anchors.set(node.anchor, node);
}

function reject(reading: Reading, node: Node, message: string, path: Path): void {
  reading.problems.push(reading.report(offsetOf(node), message, path));
}

function scalarValue(scalar: Scalar): unknown {
  const written = writtenOf(scalar);
  return written?.startsWith('0o') ? written : scalar.value;
}

function writtenOf(node: Node | null | undefined): string | undefined {
  if (!isScalar(node) || typeof node.value === 'string' || node.value === null) return undefined;
  return node.source;
}

function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}
