import { createHash } from 'node:crypto';
import type { StagedRecord } from './record.ts';

/** What a record is about: what was attached, and where it is mounted. */
export type RecordSubject = Pick<StagedRecord, 'attacher' | 'identity' | 'place'>;

/**
 * The name of a record's file says of which place it is and of which attached volume, so that a look into the folder finds all records of the
 * one or the other, and a volume that takes another's place has a record of its own beside the other's.
 */
export function recordName(subject: RecordSubject): string {
  return `${placeHash(subject.place)}-${attachmentPart(subject)}.json`;
}

/** What stands for a path in names: 32 hexadecimal digits. */
export function placeHash(place: string): string {
  return hash(place);
}

/** Equal for all places where one attached volume is mounted. */
export function attachmentKey({ attacher, identity = {} }: Omit<RecordSubject, 'place'>): string {
  const sorted = Object.entries(identity).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([attacher, sorted]);
}

/** Tells whether a file is a record of the place. */
export function ofPlace(place: string): (name: string) => boolean {
  const beginning = `${placeHash(place)}-`;
  return (name) => name.startsWith(beginning);
}

/** Tells whether a file is a record of the same attached volume at another place. */
export function ofSameElsewhere(subject: RecordSubject): (name: string) => boolean {
  const end = `-${attachmentPart(subject)}.json`;
  const isHere = ofPlace(subject.place);
  return (name) => name.endsWith(end) && !isHere(name);
}

/** Whether a file is a record, going by its name. */
export function isRecordName(name: string): boolean {
  return /^[0-9a-f]{32}-[0-9a-f]{32}\.json$/.test(name);
}

const attachmentPart = (subject: Omit<RecordSubject, 'place'>) => hash(attachmentKey(subject));

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
