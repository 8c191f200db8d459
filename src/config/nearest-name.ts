/** What somebody who mistyped a name probably meant. */
import { closest, distance } from 'fastest-levenshtein';

/** The candidate most like `name`, or undefined when none is near: about one letter in three may differ, or the order of the letters, or the case. */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  if (candidates.length === 0 || name.length > 100) return undefined;
  const wanted = name.toLowerCase();
  const lower = candidates.map((candidate) => candidate.toLowerCase());
  const best = closest(wanted, lower);
  const near = distance(wanted, best) <= Math.max(1, Math.floor(Math.max(wanted.length, best.length) / 3));
  return near || sameLetters(wanted, best) ? candidates[lower.indexOf(best)] : undefined;
}

function sameLetters(a: string, b: string): boolean {
  return [...a].sort().join('') === [...b].sort().join('');
}
