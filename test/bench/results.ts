/** Everything that one run of the benchmark has found, as it is written with `--json`. */
import type { CallFigures } from './measure-calls.ts';
import type { Sample } from './measure-growth.ts';
import type { Memory } from './process-tree.ts';

export interface SubjectResult {
  readonly name: string;
  readonly start?: {
    readonly wallMs: number;
    readonly wallMsMin: number;
    readonly wallMsMax: number;
    readonly cpuMs: number;
    readonly memory: Memory;
    readonly memoryAfterCalls?: Memory;
  };
  /** By case and concurrency. */
  readonly cases: Readonly<Record<string, Readonly<Record<number, Omit<CallFigures, 'cpuMsByRound'>>>>>;
  /** Programs started, by call. */
  readonly commands?: Readonly<Record<string, readonly string[]>>;
  readonly growth?: readonly Sample[];
}

/** The proxy's own part of a call: how much more CPU time an operation takes behind it. */
export interface ProxyCost {
  readonly case: string;
  readonly concurrency: number;
  readonly ms: number;
  readonly percent: number;
  /** The standard error of the percentage. */
  readonly plusMinus: number;
}

export interface Results {
  readonly machine: { readonly cores: number; readonly kernel: string; readonly loadAverage: readonly number[] };
  readonly subjects: readonly SubjectResult[];
  readonly proxyCost: readonly ProxyCost[];
}
