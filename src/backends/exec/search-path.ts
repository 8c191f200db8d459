/** Where host programs live: services often start without the sbin directories, and some distributions have directories of their own. */
export const systemDirectories: readonly string[] = [
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
  '/run/current-system/sw/bin',
  '/run/wrappers/bin',
];

/** The directories of a `PATH`, then the others; each once. */
export function searchPath(path: string | undefined, others: readonly string[]): readonly string[] {
  const own = (path ?? '').split(':').filter((directory) => directory.startsWith('/'));
  return [...new Set([...own, ...others])];
}
