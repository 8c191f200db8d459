/** `switchboard ctl adopt` and `switchboard ctl orphans`. */
import type { Command } from 'commander';
import type { Orphan } from '../../core/driver.ts';
import { asCallError } from '../../core/errors.ts';
import { formatSize } from '../../core/sizes.ts';
import { exitCodes } from '../exit-codes.ts';
import { isWanted, type Question } from '../is-wanted.ts';
import type { Outcome } from '../outcome.ts';
import { printable } from '../output/printable.ts';
import { withSpinner } from '../output/spinner.ts';
import { parseSeconds } from '../parse-seconds.ts';
import type { Shell } from '../shell.ts';
import { type Storage, withStorage } from './storage.ts';

const aboutConfig = `
It reads the connection’s own file and reaches the storage itself, not through a plugin: run it where the server runs. The server may be running.`;

const adoptHelp = `${aboutConfig}
What is in it stays as it is, permissions included; it is marked as a volume and shared as the connection says. It must be directly below
zfs.datasetParentName, with a name of letters, digits, _ and -. Volumes that democratic-csi made need none of this: they are volumes already.

Examples:
  switchboard ctl adopt tank/volumes/photos --config connections/nas.yaml
  zfs rename tank/photos tank/volumes/photos && switchboard ctl adopt photos --config connections/nas.yaml`;

const orphansHelp = `${aboutConfig}
Listed are volumes that are not shared or not finished, targets and subsystems without a volume, unfinished copies, what is left of deleted
volumes, and snapshots that were made for a copy or clone that is not there. What somebody uses is busy, and stays.

Exit code 0: there are none, or all were fixed. 1: there still are some.

Examples:
  switchboard ctl orphans --config connections/nas.yaml
  switchboard ctl orphans --config connections/nas.yaml --fix --yes --json`;

interface RepairOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly fix?: boolean;
  readonly yes?: boolean;
  readonly olderThan: string;
}

const configOption = [
  '--config <file>',
  'the connection’s file (default: the main file, where its driver serves directly)',
] as const;

export function defineRepair(ctl: Command, shell: Shell, outcome: Outcome): void {
  ctl
    .command('adopt <dataset>')
    .description('Make a volume of a dataset or zvol that is there already')
    .option(...configOption)
    .addHelpText('after', adoptHelp)
    .action((dataset: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<RepairOptions>();
      return withStorage(options.config, shell, (storage) => adopt(storage, dataset, options, shell));
    });
  ctl
    .command('orphans')
    .description('Show what crashes left on a storage, and repair it')
    .option(...configOption)
    .option('--fix', 'repair it, after asking')
    .option('--yes', 'do not ask')
    .option('--older-than <time>', 'leave out work that was begun since: 30m, 1h', '10m')
    .addHelpText('after', orphansHelp)
    .action((_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<RepairOptions>();
      return withStorage(options.config, shell, async (storage) => {
        outcome.code = await orphans(storage, options, shell);
      });
    });
}

async function adopt({ repair, call, handle }: Storage, name: string, options: RepairOptions, shell: Shell) {
  const volume = await withSpinner(shell, `adopting ${name}`, repair.adopt(call, name));
  const { id, capacityBytes, context } = volume;
  const size = capacityBytes > 0 ? `, ${formatSize(capacityBytes)}` : '';
  const text = `${printable(id)} is a volume now${size}; behind a proxy its id is ${printable(handle(id))}\n`;
  shell.out(options.json ? `${JSON.stringify({ id, handle: handle(id), capacityBytes, context }, null, 2)}\n` : text);
}

interface Item {
  readonly orphan: Orphan;
  outcome: 'left' | 'fixed' | 'failed';
  /** Why it is still there. */
  problem?: string;
}

/** The exit code. */
async function orphans({ repair, call }: Storage, options: RepairOptions, shell: Shell): Promise<number> {
  const olderThanMs = parseSeconds(options.olderThan) * 1000;
  const found = await withSpinner(shell, 'looking at everything', repair.orphans(call, olderThanMs));
  const items = found.map((orphan): Item => ({ orphan, outcome: 'left' }));
  if (!options.json) shell.out(listText(items));
  if (options.fix && items.length > 0 && (await isWanted(shell, options, question(items.length)))) {
    for (const item of items) {
      try {
        await item.orphan.fix(call);
        item.outcome = 'fixed';
      } catch (error) {
        item.outcome = 'failed';
        item.problem = asCallError(error).message;
      }
      if (!options.json) shell.out(outcomeText(item));
    }
  }
  if (options.json) shell.out(json(items));
  return items.every(({ outcome }) => outcome === 'fixed') ? exitCodes.done : exitCodes.failed;
}

const question = (count: number): Question => ({
  text: `Do ${count === 1 ? 'that' : `these ${count}`}?`,
  unasked: ['nobody can be asked here, and nothing was changed', 'Add --yes, or leave out --fix to look only.'],
});

function listText(items: readonly Item[]): string {
  if (items.length === 0) return 'Nothing is orphaned\n';
  return items
    .map(({ orphan: { name, why, remedy } }) => `${printable(`${name}: ${why}`)}\n  to do: ${remedy}\n`)
    .join('');
}

function outcomeText({ orphan, outcome, problem }: Item): string {
  const name = printable(orphan.name);
  return `${outcome === 'fixed' ? 'fixed ' : 'FAILED'}  ${name}${problem ? `: ${printable(problem)}` : ''}\n`;
}

/** Stable: fields are added, never changed or taken away. */
function json(items: readonly Item[]): string {
  const shown = items.map(({ orphan: { name, kind, why, remedy }, outcome, problem }) => {
    return { name, kind, why, remedy, outcome, ...(problem !== undefined && { problem }) };
  });
  return `${JSON.stringify({ orphans: shown }, null, 2)}\n`;
}
