/** How far a copy has come: for people who ask, now and then in the log, and counted. */
import type { CopyKind, CopyMeter } from '../../core/copies.ts';
import type { Logger } from '../../core/logger.ts';
import { formatSize } from '../../core/sizes.ts';

export interface CopyProgress {
  /** Bytes gone through since the copy began, and of how many, where that is known. */
  report(done: number, total?: number): void;
  /** Such as `1.50 GiB of 4.00 GiB copied`; undefined before the first report. */
  text(): string | undefined;
}

/** Milliseconds between two lines in the log. */
const logEveryMs = 60_000;

/** `what`: such as `snapshot s1 of volume v1`. */
export function createProgress(log: Logger, meter: CopyMeter, kind: CopyKind, what: string): CopyProgress {
  let last: { readonly done: number; readonly total: number | undefined } | undefined;
  let told = performance.now();
  const began = told;

  function text(): string | undefined {
    if (!last) return undefined;
    const of = last.total ? ` of ${formatSize(last.total)}` : '';
    return `${formatSize(last.done)}${of} copied`;
  }

  return {
    report(done, total) {
      const more = done - (last?.done ?? 0);
      last = { done: Math.max(done, last?.done ?? 0), total };
      if (more > 0) meter.bytesCopied(kind, more);
      const now = performance.now();
      if (now - told < logEveryMs) return;
      told = now;
      const percent = total ? Math.min(100, Math.floor((100 * done) / total)) : undefined;
      const seconds = Math.round((now - began) / 1000);
      log.info('a copy goes on', { what, engine: kind.engine, copied: text(), percent, seconds });
    },
    text,
  };
}
