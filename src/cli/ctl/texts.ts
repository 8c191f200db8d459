/** Volumes, snapshots and numbers for people. */
import { formatSize } from '../../core/sizes.ts';
import { type Cell, details, table } from '../output/table.ts';
import { formatTime } from '../output/time.ts';
import type { Session } from './session.ts';
import type { ShownCondition, ShownSnapshot, ShownStats, ShownVolume } from './shapes.ts';

interface Column<T> {
  readonly head: string;
  readonly cell: (item: T) => Cell;
}

const volumeColumns: readonly Column<ShownVolume>[] = [
  { head: 'VOLUME', cell: (volume) => volume.id },
  { head: 'NAME', cell: (volume) => volume.name ?? '' },
  { head: 'SIZE', cell: (volume) => sizeText(volume.capacityBytes) },
  { head: 'MADE FROM', cell: sourceText },
  { head: 'REACHABLE FROM', cell: (volume) => topologyText(volume.topology) },
  { head: 'PUBLISHED ON', cell: (volume) => (volume.publishedNodes ?? []).join(', ') },
  { head: 'CONDITION', cell: (volume) => conditionText(volume.condition) },
];

export function volumesText(volumes: readonly ShownVolume[], session: Session): string {
  return listText('no volumes', volumeColumns, volumes, session);
}

export function volumeText(volume: ShownVolume, session: Session): string {
  const context = Object.entries(volume.context).map(([key, value]) => `${key}=${value}`);
  const pairs = volumeColumns.map(({ head, cell }) => [head.toLowerCase(), cell(volume)] as const);
  return details([...pairs, ['context', context.join('\n')]], session.colours);
}

function snapshotColumns(now: number): readonly Column<ShownSnapshot>[] {
  return [
    { head: 'SNAPSHOT', cell: (snapshot) => snapshot.id },
    { head: 'VOLUME', cell: (snapshot) => snapshot.volumeId },
    { head: 'SIZE', cell: (snapshot) => sizeText(snapshot.sizeBytes) },
    { head: 'CREATED', cell: ({ createdAt }) => (createdAt === undefined ? '' : formatTime(new Date(createdAt), now)) },
    { head: 'READY', cell: (snapshot) => (snapshot.ready ? 'yes' : 'no') },
  ];
}

export function snapshotsText(snapshots: readonly ShownSnapshot[], session: Session): string {
  return listText('no snapshots', snapshotColumns(session.shell.now()), snapshots, session);
}

export function snapshotText(snapshot: ShownSnapshot, session: Session): string {
  const columns = snapshotColumns(session.shell.now());
  return details(
    columns.map(({ head, cell }) => [head.toLowerCase(), cell(snapshot)]),
    session.colours,
  );
}

export function statsText(stats: ShownStats, session: Session): string {
  const amount = (unit: string, value: number | undefined) => {
    if (value === undefined) return '';
    return unit === 'BYTES' ? formatSize(value) : value.toLocaleString('en-US');
  };
  const rows = stats.usage.map(({ unit, total, used, available }) => [
    unit.toLowerCase(),
    amount(unit, total),
    amount(unit, used),
    amount(unit, available),
    used !== undefined && total > 0 ? `${Math.round((100 * used) / total)} %` : '',
  ]);
  const condition = stats.condition ? `\ncondition: ${conditionText(stats.condition)}\n` : '';
  return table(['', 'TOTAL', 'USED', 'AVAILABLE', 'USE'], rows, session.colours) + condition;
}

export function sizeText(bytes: number | undefined): string {
  return bytes === undefined ? '-' : formatSize(bytes);
}

export function topologyText(topologies: ShownVolume['topology']): string {
  const one = (segments: Readonly<Record<string, string>>) =>
    Object.entries(segments)
      .map(([key, value]) => `${key}=${value}`)
      .join(', ');
  return (topologies ?? []).map(one).join('\n');
}

function sourceText({ source }: ShownVolume): string {
  if (source === undefined) return '';
  return 'snapshot' in source ? `snapshot ${source.snapshot}` : `volume ${source.volume}`;
}

function conditionText(condition: ShownCondition | undefined): string {
  if (condition === undefined) return '';
  return condition.abnormal ? `ABNORMAL: ${condition.message}` : condition.message || 'ok';
}

/** A table without the columns that say nothing about any item. */
function listText<T>(none: string, columns: readonly Column<T>[], items: readonly T[], session: Session): string {
  if (items.length === 0) return `${none}\n`;
  const rows = items.map((item) => columns.map(({ cell }) => cell(item)));
  const used = columns.map((_column, index) => rows.some((row) => row[index] !== ''));
  const kept = <C>(cells: readonly C[]) => cells.filter((_cell, index) => used[index]);
  return table(kept(columns.map(({ head }) => head)), rows.map(kept), session.colours);
}
