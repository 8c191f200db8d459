/** Names of the folders in which something is made or removed: who does it, which piece of work it is, and what it has taken. */
import { randomUUID } from 'node:crypto';
import type { Owner } from '../../node/owner.ts';

export interface WorkName {
  readonly owner: Owner;
  /** Distinguishes pieces of work; stays when a dead owner's work is taken over. Records name it. */
  readonly work: string;
  /** The project quota number it has taken. */
  readonly project?: number | undefined;
}

export function newWork(): string {
  return randomUUID().replaceAll('-', '').slice(0, 12);
}

export function formatWorkName(name: WorkName): string {
  const taken = name.project === undefined ? '' : `-q${name.project}`;
  return `${name.owner}-${name.work}${taken}`;
}

/** Undefined for a text that is not such a name. */
export function parseWorkName(text: string): WorkName | undefined {
  const match = /^([0-9a-f]+\.\d+\.\d+\.\d+)-([0-9a-f]{12})(?:-q(\d{1,10}))?$/.exec(text);
  if (!match?.[1] || !match[2]) return undefined;
  return { owner: match[1], work: match[2], ...(match[3] && { project: Number(match[3]) }) };
}

/** The owner that a process gives a work which it leaves for others to go on with: of its machine's boot, and nobody. */
export function releasedOwner(owner: Owner): Owner {
  return `${bootOf(owner)}.0.0.0`;
}

export function isReleased(owner: Owner): boolean {
  return owner.endsWith('.0.0.0');
}

/** Tells the times between two starts of machines apart. */
export function bootOf(owner: Owner): string {
  return owner.split('.')[0] ?? '';
}
