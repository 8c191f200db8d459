/** One thing that was looked at, and what it means for the person who asked. */

/** `note`: not in order or not there, but nothing that is configured needs it. `error`: something that is configured cannot work. */
export const findingStates = ['ok', 'note', 'warning', 'error'] as const;
export type FindingState = (typeof findingStates)[number];

/** In the order in which they are shown. */
export const subjects = [
  'configuration',
  'connections',
  'sockets',
  'privileges',
  'programs',
  'kernel',
  'identity',
  'mounts',
  'docker',
  'limits',
] as const;
export type Subject = (typeof subjects)[number];

export interface Finding {
  readonly subject: Subject;
  /** What was looked at, such as a program's or a connection's name. */
  readonly name: string;
  readonly state: FindingState;
  /** What was found. */
  readonly detail: string;
  /** What to do about it. */
  readonly advice?: string | undefined;
}

/** Makes findings of one subject. */
export function about(subject: Subject) {
  return (state: FindingState, name: string, detail: string, advice?: string): Finding => ({
    subject,
    name,
    state,
    detail,
    ...(advice !== undefined && { advice }),
  });
}
