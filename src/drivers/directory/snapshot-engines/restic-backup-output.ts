/** What `restic backup --json` says: how far it is and what came of it on standard output, files it could not read on standard error. */
import * as v from 'valibot';
import { oneLine } from '../../../core/errors.ts';
import type { CopyProgress } from '../copy-progress.ts';

const status = v.object({
  message_type: v.literal('status'),
  bytes_done: v.optional(v.number(), 0),
  total_bytes: v.optional(v.number()),
});
const summary = v.object({ message_type: v.literal('summary'), snapshot_id: v.string() });
const line = v.pipe(v.string(), v.parseJson(), v.variant('message_type', [status, summary]));

/** How it tells of errors: Go's error as it is, or since 0.17 its text. */
const failure = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    message_type: v.literal('error'),
    error: v.union([v.object({ message: v.string() }), v.object({ Op: v.string(), Err: v.unknown() })]),
    item: v.optional(v.string(), ''),
  }),
);

/** ENOENT, as Go writes it. */
const noEntry = 2;

export interface BackupOutput {
  readonly takeLine: (line: string) => boolean;
  /** Undefined: it told of none. */
  snapshotId(): string | undefined;
  /** How many files had disappeared before they could be read, when that is all it complains of; else the first complaint. */
  lostIn(stderr: string): number | string;
}

export function createBackupOutput(progress: CopyProgress): BackupOutput {
  let id: string | undefined;
  return {
    takeLine(text) {
      const parsed = v.safeParse(line, text);
      if (!parsed.success) return false;
      const { output } = parsed;
      if (output.message_type === 'summary') id = output.snapshot_id;
      else progress.report(output.bytes_done, output.total_bytes);
      return true;
    },
    snapshotId: () => id,
    lostIn,
  };
}

function lostIn(stderr: string): number | string {
  const gone = new Set<string>();
  for (const text of stderr.split('\n').filter((one) => one.trim() !== '')) {
    const parsed = v.safeParse(failure, text);
    if (!parsed.success) {
      // Its last word, which only says that there were errors.
      if (/at least one source file could not be read/i.test(text)) continue;
      return oneLine(text, 200);
    }
    const { error, item } = parsed.output;
    if (!isGone(error))
      return oneLine(`${item}: ${'message' in error ? error.message : `${error.Op} ${error.Err}`}`, 200);
    gone.add(item);
  }
  return gone.size > 0 ? gone.size : 'it does not say why';
}

function isGone(error: v.InferOutput<typeof failure>['error']): boolean {
  return 'message' in error ? /no such file or directory$/.test(error.message) : error.Err === noEntry;
}
