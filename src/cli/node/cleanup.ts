/** `switchboard node cleanup`: lists what is left over of staged volumes, asks, and takes it away. */
import { detachedContext } from '../../core/call.ts';
import { asCallError } from '../../core/errors.ts';
import { silentLogger } from '../../core/logger.ts';
import { cleanLeftover } from '../../node/clean-leftover.ts';
import type { NodePlane } from '../../node/node-plane.ts';
import { takeCleanupTurn } from '../../node/records/cleanup-turn.ts';
import { findLeftovers, type Leftover } from '../../node/records/leftovers.ts';
import { exitCodes } from '../exit-codes.ts';
import { isWanted, type Question } from '../is-wanted.ts';
import { printable } from '../output/printable.ts';
import type { Shell } from '../shell.ts';
import { placeText, volumeText } from './leftover-text.ts';

export interface CleanupOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Milliseconds for one leftover. */
const limitMs = 120_000;

type Outcome = 'left' | 'removed' | 'failed';

interface Item {
  readonly leftover: Leftover;
  outcome: Outcome;
  /** Why it is still there. */
  problem?: string;
}

/** The exit code: done when nothing is left over afterwards, as far as can be told, or only what was asked for is shown. */
export async function cleanup(plane: NodePlane, options: CleanupOptions, shell: Shell): Promise<number> {
  const items = (await look(plane, shell)).map((leftover): Item => ({ leftover, outcome: 'left' }));
  const known = items.filter(({ leftover }) => leftover.kind !== 'unknown');
  if (!options.json) shell.out(listText(items, plane.records.folder));
  if (known.length > 0 && !options.dryRun && (await isWanted(shell, options, question(known.length)))) {
    await cleanAll(plane, known, options.json ? () => {} : (item) => shell.out(outcomeText(item)));
  }
  if (options.json) shell.out(json(items, plane.records.folder));
  const isDone = options.dryRun || items.every(({ outcome }) => outcome === 'removed');
  return isDone ? exitCodes.done : exitCodes.failed;
}

async function look({ records, tools }: NodePlane, shell: Shell): Promise<readonly Leftover[]> {
  const call = detachedContext(silentLogger, AbortSignal.timeout(limitMs));
  const table = await tools.readTable();
  const found = await records.all(table);
  const lookFor = { table, bootId: await records.bootId(), now: shell.now(), deadMounts: true };
  const leftovers = await findLeftovers(call, tools, found, lookFor);
  return leftovers.filter((one) => !(one.record && one.underWay));
}

const question = (count: number): Question => ({
  text: `Detach and forget ${count === 1 ? 'it' : `these ${count}`}?`,
  unasked: ['nobody can be asked here, and nothing was removed', 'Add --yes, or --dry-run to look only.'],
});

async function cleanAll(plane: NodePlane, items: readonly Item[], done: (item: Item) => void): Promise<void> {
  const { folder } = plane.records;
  if (folder === undefined) return;
  const giveUpTurn = await takeCleanupTurn(folder);
  try {
    for (const item of items) {
      try {
        await cleanLeftover(detachedContext(silentLogger, AbortSignal.timeout(limitMs)), plane, item.leftover);
        item.outcome = 'removed';
      } catch (error) {
        item.outcome = 'failed';
        item.problem = asCallError(error).message;
      }
      done(item);
    }
  } finally {
    await giveUpTurn();
  }
}

function listText(items: readonly Item[], folder = ''): string {
  if (items.length === 0) return `Nothing is left over in ${folder}\n`;
  const lines = items.map(({ leftover }) => `  ${nameOf(leftover)}\n    ${aboutText(leftover)}\n`);
  return `Left over, by the records in ${folder}:\n${lines.join('')}`;
}

const nameOf = ({ name, record }: Leftover) => printable(record ? volumeText(record) : `record ${name}`);

function aboutText({ record, kind, why }: Leftover): string {
  if (!record) return printable(`${why}; only the file is removed, and what it tells of stays attached if it is`);
  const since = new Date(record.at).toISOString().slice(0, 19);
  const said = {
    'not mounted': why,
    dead: `dead, ${why}`,
    unknown: `it cannot be told whether it is in use, and it is left: ${why}`,
  };
  return printable(`${placeText(record)}, staged ${since}Z: ${said[kind]}`);
}

function outcomeText({ leftover, outcome, problem }: Item): string {
  return `${outcome === 'removed' ? 'removed' : 'FAILED '}  ${nameOf(leftover)}${problem ? `: ${printable(problem)}` : ''}\n`;
}

/** Stable: fields are added, never changed or taken away. */
function json(items: readonly Item[], folder: string | undefined): string {
  const leftovers = items.map(({ leftover, outcome, problem }) => {
    const { name, kind, why, record } = leftover;
    const about = record && {
      ...{ volume: volumeText(record), path: record.place, attacher: record.attacher, identity: record.identity },
      staged: new Date(record.at).toISOString(),
    };
    return { record: name, kind, why, ...about, outcome, ...(problem !== undefined && { problem }) };
  });
  return `${JSON.stringify({ folder, leftovers }, null, 2)}\n`;
}
