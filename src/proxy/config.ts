/** The main configuration file of `driver: proxy`. */
import * as v from 'valibot';
import { commonEntries } from '../config/common.ts';

const parts = v.object({
  nodeName: v.optional(v.boolean(), true),
  hostname: v.optional(v.boolean(), false),
  iqn: v.optional(v.boolean(), false),
  nqn: v.optional(v.boolean(), false),
});

const shortenedPrefix = v.object({
  shortName: v.pipe(v.string(), v.regex(/^[0-9a-z]+$/, 'a short name of lower-case letters and digits')),
  prefix: v.pipe(v.string(), v.nonEmpty('the beginning of the names it stands for')),
});

const shortenedPrefixes = v.optional(
  v.pipe(
    v.array(shortenedPrefix),
    v.check(
      (list) => new Set(list.map((one) => one.shortName)).size === list.length,
      'a list in which every shortName occurs once',
    ),
  ),
  [],
);

const nodeId = v.object({
  parts: v.pipe(
    v.optional(parts, {}),
    v.check((one) => one.nodeName || one.hostname || one.iqn || one.nqn, 'at least one part that is true'),
  ),
  iqnPrefix: shortenedPrefixes,
  nqnPrefix: shortenedPrefixes,
});

const source = v.object({
  source: v.optional(v.picklist(['nodeName', 'hostname', 'env', 'file']), 'nodeName'),
  envName: v.optional(v.string()),
  file: v.optional(v.string()),
});

/** Default of a rule's regular expression and of its template: the whole text, unchanged. */
const wholeText = { pattern: '(.*)', template: '{match:0}' } as const;

const ruleBySuffix = v.pipe(
  v.object({
    ...source.entries,
    keySuffix: v.string(),
    matchRegexp: v.optional(v.string(), wholeText.pattern),
    resultTemplate: v.optional(v.string(), wholeText.template),
  }),
  v.check((rule) => namesItsSource(rule), 'envName with "source: env" and file with "source: file"'),
  v.transform((rule) => ({
    key: rule.keySuffix,
    pattern: rule.matchRegexp,
    template: rule.resultTemplate,
    from: sourceOf(rule),
  })),
);

const ruleByKey = v.pipe(
  v.object({
    ...source.entries,
    topologyKey: v.string(),
    regex: v.optional(v.string()),
    regexp: v.optional(v.string()),
    template: v.optional(v.string(), wholeText.template),
  }),
  v.check((rule) => namesItsSource(rule), 'envName with "source: env" and file with "source: file"'),
  v.check((rule) => rule.regex === undefined || rule.regexp === undefined, 'either regex or regexp, not both'),
  v.transform((rule) => ({
    key: rule.topologyKey,
    pattern: rule.regex ?? rule.regexp ?? wholeText.pattern,
    template: rule.template,
    from: sourceOf(rule),
  })),
);

const nodeTopology = v.pipe(
  v.object({
    type: v.optional(v.picklist(['cluster', 'node', 'zone', 'custom']), 'cluster'),
    prefix: v.optional(v.string(), 'org.democratic-csi.topology'),
    fromRegexp: v.optional(v.array(ruleByKey), []),
    customRules: v.optional(v.array(ruleBySuffix), []),
  }),
  v.transform(({ type, prefix, fromRegexp, customRules }) => ({
    type: type === 'custom' ? ('zone' as const) : type,
    prefix,
    rules: [...fromRegexp, ...customRules],
  })),
);

const proxy = v.object({
  configFolder: v.pipe(
    v.string(),
    v.nonEmpty('the folder of the connection files'),
    v.transform((folder) => (folder.length > 1 ? folder.replace(/\/+$/, '') || '/' : folder)),
  ),
  cacheTimeoutMinutes: v.optional(
    v.pipe(
      v.number(),
      v.check((minutes) => minutes === -1 || minutes >= 0, 'minutes, 0 for no caching or -1 for ever'),
    ),
    60,
  ),
  defaultConnection: v.optional(v.string()),
  listing: v.optional(v.object({ skipUnavailable: v.optional(v.boolean(), false) }), {}),
  nodeId: v.optional(nodeId, {}),
  nodeTopology: v.optional(nodeTopology, {}),
});

/** The whole document. `service`, `node` and `csi` also lie under every connection's file. */
export const proxySchema = v.object({ ...commonEntries, proxy });

export type ProxyConfig = v.InferOutput<typeof proxySchema>;
export type ProxyOptions = ProxyConfig['proxy'];
export type NodeIdOptions = ProxyOptions['nodeId'];
export type NodeTopologyOptions = ProxyOptions['nodeTopology'];
export type TopologyRule = NodeTopologyOptions['rules'][number];
export type TopologySource = TopologyRule['from'];

type SourceKeys = v.InferOutput<typeof source>;

function namesItsSource(rule: SourceKeys): boolean {
  if (rule.source === 'env') return Boolean(rule.envName);
  return rule.source !== 'file' || Boolean(rule.file);
}

function sourceOf(rule: SourceKeys) {
  if (rule.source === 'env') return { type: 'env', name: rule.envName ?? '' } as const;
  if (rule.source === 'file') return { type: 'file', path: rule.file ?? '' } as const;
  return { type: rule.source } as const;
}
