/** Time limits as people write them. */
import { UsageError } from './usage-error.ts';

/** `30`, `30s`, `5m`, `1h` → seconds. */
export function parseSeconds(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(s|m|h)?$/.exec(text);
  const factor = { s: 1, m: 60, h: 3600 }[match?.[2] ?? 's'] ?? 1;
  const seconds = match ? Number(match[1]) * factor : 0;
  if (seconds > 0 && seconds <= 86_400) return seconds;
  throw new UsageError(`"${text}" is not a time limit`, 'Such as 30, 30s or 5m; one day at most.');
}
