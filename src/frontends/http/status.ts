/**
 * What the process is doing, as plain values: `/status.json` is this, and the status page shows it. There is nothing secret in it: calls are
 * told by the ids, names and paths that their log lines have, connections by what their drivers say of them.
 */
import type { ConnectionTold } from './status-connections.ts';

export interface Status {
  /** ISO 8601, as all times here. */
  readonly time: string;
  readonly ready: boolean;
  readonly notReadyBecause?: string | undefined;
  /** What a person should look at first, most pressing first. */
  readonly attention: readonly Attention[];
  readonly plugin: PluginTold;
  /** Undefined on a process without node service. */
  readonly node?: NodeTold | undefined;
  /** Why the files of the connections could not be looked at. */
  readonly filesProblem?: string | undefined;
  readonly connections: readonly ConnectionTold[];
  /** Calls being answered, oldest first. */
  readonly calls: readonly CallTold[];
  /** Work in progress, oldest first; it may outlive the call that began it. */
  readonly operations: readonly OperationTold[];
  /** Calls that failed, newest first; at most 100. */
  readonly failures: readonly FailureTold[];
}

export interface Attention {
  readonly kind: 'not-ready' | 'stuck' | 'broken-connection' | 'no-answer' | 'node';
  /** What it is about. */
  readonly about: string;
  readonly text: string;
}

export interface PluginTold {
  readonly name: string;
  readonly driver: string;
  readonly nodeName: string;
  readonly modes: readonly string[];
  readonly version: string;
  readonly commit: string;
  readonly runtime: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  readonly memoryBytes: number;
  readonly addresses: readonly string[];
}

export interface NodeTold {
  readonly state: 'asking' | 'known' | 'failed';
  readonly nodeId?: string | undefined;
  readonly topology: readonly SegmentTold[];
  /** Rules that made no segment, and why. */
  readonly skipped: readonly { readonly rule: string; readonly why: string; readonly warning: boolean }[];
  readonly problem?: string | undefined;
}

export interface SegmentTold {
  readonly key: string;
  readonly value: string;
  /** What produced it; undefined for a driver that serves without a proxy. */
  readonly rule?: string | undefined;
}

/** What tells calls apart. */
interface Told {
  readonly method: string;
  /** What it is about: an id or a name. */
  readonly subject?: string | undefined;
  /** More of what it names, such as paths. */
  readonly details: Readonly<Record<string, string>>;
  readonly requestId: string;
  readonly connection?: string | undefined;
  readonly driver?: string | undefined;
}

export interface CallTold extends Told {
  readonly startedAt: string;
  readonly seconds: number;
  readonly waitingFor?: string | undefined;
  /** The work whose result it waits for; `joined`: an earlier call began it. */
  readonly operation?: { readonly title: string; readonly seconds: number; readonly joined: boolean } | undefined;
  readonly stuck: boolean;
}

export interface OperationTold {
  readonly title: string;
  readonly requestId: string;
  readonly connection?: string | undefined;
  readonly startedAt: string;
  readonly seconds: number;
  readonly waitingFor?: string | undefined;
  /** How many calls wait for it; 0: it goes on for the retry. */
  readonly callers: number;
  readonly stuck: boolean;
}

export interface FailureTold extends Told {
  readonly at: string;
  /** How long it took. */
  readonly seconds: number;
  readonly code: string;
  readonly message: string;
}
