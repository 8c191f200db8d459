/** Times for people. */

/** Local date and time, and how long ago: `2025-11-21 14:03:22 (5 min ago)`. */
export function formatTime(time: Date, now: number): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  const age = now - time.getTime();
  return `${day} ${clock} (${age < 0 ? `in ${formatDuration(-age)}` : `${formatDuration(age)} ago`})`;
}

const steps: readonly (readonly [string, number, number])[] = [
  ['s', 1000, 60],
  ['min', 60_000, 60],
  ['h', 3_600_000, 48],
];

/** Milliseconds in the one unit that says it best: `12 s`, `5 min`, `30 h`, `12 d`. */
function formatDuration(ms: number): string {
  for (const [unit, size, most] of steps) {
    const value = Math.floor(ms / size);
    if (value < most) return `${value} ${unit}`;
  }
  return `${Math.floor(ms / 86_400_000)} d`;
}
