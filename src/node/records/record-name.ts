import { createHash } from 'node:crypto';
import type { StagedRecord } from './record.ts';

/** What a record is about: what was attached, and where it is mounted. */
export type RecordSubject = Pick<StagedRecord, 'attacher' | 'identity' | 'place'>;

/**
 * The name of a record's file says of which place it is and of which attached volume, so that a look into the folder finds all records of the
 * one or the other, and a volume that takes another's place has a record of its own beside the other's.
 */
export function recordName(subject: RecordSubject): string {
  return `${placePart(subject.place)}-${attachmentPart(subject)}.json`;
}

/** Equal for all places where one attached volume is mounted. */
export function attachmentKey({ attacher, identity = {} }: Omit<RecordSubject, 'place'>): string {
  const sorted = Object.entries(identity).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([attacher, sorted]);
}

/** Whether a file is a record of the place. */
export function isOfPlace(name: string, place: string): boolean {
  return name.startsWith(`${placePart(place)}-`);
}

/** Whether a file is a record of the same attached volume at another place. */
export function isOfSameElsewhere(name: string, subject: RecordSubject): boolean {
  return name.endsWith(`-${attachmentPart(subject)}.json`) && !isOfPlace(name, subject.place);
}

/** Whether a file is a record, going by its name. */
export function isRecordName(name: string): boolean {
  return /^[0-9a-f]{32}-[0-9a-f]{32}\.json$/.test(name);
}

const placePart = (place: string) => hash(place);
const attachmentPart = (subject: Omit<RecordSubject, 'place'>) => hash(attachmentKey(subject));

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
