/** Times, for people. */
const units: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
];

/** Seconds in the two units that say most of it: `0.4 s`, `42 s`, `2 min 13 s`, `3 d 4 h`. */
export function formatAge(seconds: number): string {
  if (seconds < 10) return `${Math.max(0, Math.floor(seconds * 10) / 10)} s`;
  const first = units.findIndex(([, size]) => seconds >= size);
  const [name, size] = units[first] ?? ['s', 1];
  const next = units[first + 1];
  const rest = next && Math.floor((seconds % size) / next[1]);
  return `${Math.floor(seconds / size)} ${name}${next && rest ? ` ${rest} ${next[0]}` : ''}`;
}

/** `2025-11-21 04:00:02 UTC` of an ISO 8601 text in UTC. */
export function formatClock(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}
