/** `major:minor` of a device number as stat(2) gives it (glibc's gnu_dev_major and gnu_dev_minor). */
export function deviceNumber(rdev: number): string {
  const value = BigInt(rdev);
  const major = ((value >> 8n) & 0xfffn) | ((value >> 32n) & 0xfffff000n);
  const minor = (value & 0xffn) | ((value >> 12n) & 0xffffff00n);
  return `${major}:${minor}`;
}
