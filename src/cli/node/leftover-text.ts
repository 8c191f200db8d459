import type { StagedRecord } from '../../node/records/record.ts';

/** The volume's id, as the orchestrator knows it. */
export function volumeText({ volumeId, connection }: StagedRecord): string {
  return connection === undefined ? volumeId : `v:${connection}/${volumeId}`;
}

/** Where it was mounted, and as what it was attached. */
export function placeText({ place, attacher, identity = {} }: StagedRecord): string {
  const parts = Object.entries(identity).map(([key, value]) => `${key} ${value}`);
  return `${place} (${[attacher, ...parts].join(', ')})`;
}
