/**
 * Where this node is: the topology that NodeGetInfo reports.
 *
 * `cluster`: the same label on all nodes; `node`: the node's name; `zone` (also called `custom`): labels made by rules from the node's name,
 * the host name, an environment variable or a file. A rule that does not match is skipped, and a later rule overrides an earlier one.
 */
import type { RE2JS } from 're2js';
import { CallError, errnoOf, oneLine } from '../core/errors.ts';
import type { Topology } from '../core/volume.ts';
import type { NodeTopologyOptions, TopologyRule, TopologySource } from './config.ts';
import { problemWithKey, problemWithPrefix, problemWithValue } from './labels.ts';

/** What the rules look at. */
export interface NodeFacts {
  readonly nodeName: string;
  readonly hostName: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The content of a file of the host. */
  readonly readFile: (path: string) => Promise<string>;
}

/** What one rule did, for people. */
export interface RuleOutcome {
  /** Such as `rule 2 (zone from env RACK)`. */
  readonly rule: string;
  /** The segment it made; undefined when it was skipped. */
  readonly segment?: { readonly key: string; readonly value: string } | undefined;
  /** Why it was skipped, or that a later rule overrode it. */
  readonly note?: string | undefined;
  /** True when the operator should look at it: something that the rule names is not there. */
  readonly warning: boolean;
}

export interface NodeTopologyExplanation {
  readonly segments: Topology;
  readonly outcomes: readonly RuleOutcome[];
}

/** The node's segments and which rule produced each. Throws FAILED_PRECONDITION, naming the rule, for rules that can never work or make illegal labels. */
export async function explainNodeTopology(
  options: NodeTopologyOptions,
  facts: NodeFacts,
): Promise<NodeTopologyExplanation> {
  const { type, prefix } = options;
  const problem = problemWithPrefix(prefix);
  if (problem !== undefined) throw wrong('proxy.nodeTopology.prefix', problem);
  if (type === 'cluster') return fixed('type "cluster"', `${prefix}/cluster`, 'local');
  if (type === 'node') return fixed('type "node"', `${prefix}/node`, facts.nodeName);
  const rules = await compileRules(options);
  const outcomes: RuleOutcome[] = [];
  for (const rule of rules) outcomes.push(await applyRule(rule, facts));
  return withOverridden(outcomes);
}

/** Compiles the rules: throws FAILED_PRECONDITION for the first one that can never work. */
export async function compileRules(options: NodeTopologyOptions): Promise<readonly CompiledRule[]> {
  if (options.rules.length === 0) return [];
  // Matching takes linear time whatever the pattern: a rule can not hang the node.
  const { RE2JS } = await import('re2js');
  return options.rules.map((rule, index) => {
    const name = `rule ${index + 1} (${rule.key} from ${describe(rule.from)})`;
    const short = rule.key.startsWith(`${options.prefix}/`) ? rule.key.slice(options.prefix.length + 1) : rule.key;
    const key = `${options.prefix}/${short}`;
    const problem = short.includes('/') ? `"${rule.key}" is outside the prefix ${options.prefix}` : problemWithKey(key);
    if (problem !== undefined) throw wrong(name, problem);
    const pattern = compilePattern(RE2JS, name, rule.pattern);
    assertGroupsExist(name, rule.template, pattern.groupCount());
    return { ...rule, name, key, pattern };
  });
}

interface CompiledRule extends Omit<TopologyRule, 'pattern'> {
  readonly name: string;
  readonly pattern: RE2JS;
}

function compilePattern(engine: typeof RE2JS, rule: string, pattern: string): RE2JS {
  try {
    return engine.compile(pattern);
  } catch (error) {
    const said = oneLine(error instanceof Error ? error.message : String(error), 120);
    throw wrong(
      rule,
      `the regular expression ${JSON.stringify(pattern)} cannot be used (${said}); lookaround and backreferences are not supported`,
    );
  }
}

const placeholder = /\$?\{match:(\d+)\}/g;

function assertGroupsExist(rule: string, template: string, groups: number): void {
  for (const [text, number] of template.matchAll(placeholder)) {
    if (Number(number) <= groups) continue;
    throw wrong(rule, `the template has ${text}, but the regular expression has only ${groups} groups`);
  }
}

async function applyRule(rule: CompiledRule, facts: NodeFacts): Promise<RuleOutcome> {
  const input = await read(rule.from, facts);
  if (typeof input !== 'string') return { rule: rule.name, note: `skipped: ${input.missing}`, warning: true };
  const matcher = rule.pattern.matcher(input);
  if (!matcher.matches()) {
    return { rule: rule.name, note: `skipped: ${JSON.stringify(input)} does not match`, warning: false };
  }
  const value = rule.template.replace(placeholder, (_text, group: string) => matcher.group(Number(group)) ?? '');
  if (value === '') return { rule: rule.name, note: 'skipped: the result is empty', warning: false };
  const problem = problemWithValue(value);
  if (problem !== undefined) throw wrong(rule.name, problem);
  return { rule: rule.name, segment: { key: rule.key, value }, warning: false };
}

async function read(source: TopologySource, facts: NodeFacts): Promise<string | { readonly missing: string }> {
  switch (source.type) {
    case 'nodeName':
      return facts.nodeName;
    case 'hostname':
      return facts.hostName;
    case 'env':
      return facts.env[source.name] ?? { missing: `the environment variable ${source.name} is not set` };
    case 'file':
      try {
        return (await facts.readFile(source.path)).trim();
      } catch (error) {
        return { missing: `${source.path} cannot be read (${errnoOf(error) ?? 'failed'})` };
      }
  }
}

function withOverridden(outcomes: readonly RuleOutcome[]): NodeTopologyExplanation {
  const last = new Map(outcomes.flatMap((one) => (one.segment ? [[one.segment.key, one] as const] : [])));
  return {
    segments: Object.fromEntries([...last].map(([key, one]) => [key, one.segment?.value ?? ''])),
    outcomes: outcomes.map((one) => {
      const winner = one.segment && last.get(one.segment.key);
      return winner && winner !== one ? { ...one, note: `overridden by ${winner.rule}` } : one;
    }),
  };
}

function fixed(rule: string, key: string, value: string): NodeTopologyExplanation {
  const problem = problemWithValue(value);
  if (problem !== undefined) throw wrong(rule, problem);
  return { segments: { [key]: value }, outcomes: [{ rule, segment: { key, value }, warning: false }] };
}

function describe(source: TopologySource): string {
  if (source.type === 'env') return `env ${source.name}`;
  return source.type === 'file' ? `file ${source.path}` : source.type;
}

function wrong(where: string, what: string): CallError {
  return new CallError('FAILED_PRECONDITION', `node topology, ${where}: ${what}`);
}
