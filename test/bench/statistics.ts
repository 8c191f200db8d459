export const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

export const median = (numbers: readonly number[]): number => percentile(numbers, 50);

/** The value that `percent` of the numbers do not exceed; NaN for none. */
export function percentile(numbers: readonly number[], percent: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const place = ((sorted.length - 1) * percent) / 100;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** The standard error of the mean; NaN for fewer than two numbers. */
export function standardError(numbers: readonly number[]): number {
  const mean = sum(numbers) / numbers.length;
  const squares = sum(numbers.map((one) => (one - mean) ** 2));
  return Math.sqrt(squares / (numbers.length - 1) / numbers.length);
}
