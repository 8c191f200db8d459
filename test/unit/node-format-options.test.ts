import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseFormatOptions } from '../../src/node/file-systems/format-options.ts';
import { fileSystemNamed } from '../../src/node/file-systems/index.ts';

for (const [fsType, text, words] of [
  ['', '', []],
  [
    '',
    '  -E lazy_itable_init=0,stride=4   -O ^metadata_csum ',
    ['-E', 'lazy_itable_init=0,stride=4', '-O', '^metadata_csum'],
  ],
  ['ext4', '-i65536 -j -m 5', ['-i65536', '-j', '-m', '5']],
  ['ext2', `-L "two words"`, ['-L', 'two words']],
  ['ext3', `-L 'it'"s"\\ me`, ['-L', 'its me']],
  ['xfs', '-K -m reflink=1,bigtime=1 -d agcount=4', ['-K', '-m', 'reflink=1,bigtime=1', '-d', 'agcount=4']],
  ['btrfs', '--csum=xxhash -m single', ['--csum=xxhash', '-m', 'single']],
  ['vfat', '-F 32', ['-F', '32']],
  ['exfat', '-c 128K', ['-c', '128K']],
  ['ntfs', '-c 65536 -I', ['-c', '65536', '-I']],
] as const) {
  test(`${fsType || 'the default'} is made with ${text || 'nothing more'}`, () => {
    assert.deepEqual(parseFormatOptions(text, fsType), words);
  });
}

for (const [fsType, text] of [
  ['ext4', '/dev/sda'],
  ['ext4', '-d /etc'],
  ['ext4', '-d etc'],
  ['ext4', '-jd etc'],
  ['ext4', '-J device=/dev/sda'],
  ['ext4', '-J size=4,device=LABEL=x'],
  ['ext4', '-E offset=4096'],
  ['ext4', '-L "open'],
  ['ext4', '-m'],
  ['ext4', '-- -m 0'],
  ['ext4', '-n'],
  ['ext4', '-L $(reboot)'],
  ['ext4', '-m -F'],
  ['ext4', `-m ${' '.repeat(1100)}1`],
  ['xfs', '-l logdev=/dev/sda'],
  ['xfs', '-d agcount=4,name=sda'],
  ['xfs', '-d file'],
  ['xfs', '-p etc/passwd'],
  ['xfs', '-f'],
  ['btrfs', '/dev/sdb'],
  ['btrfs', '-r etc'],
  ['btrfs', '--rootdir=etc'],
  ['vfat', '-C new'],
  ['ntfs', '-F'],
] as const) {
  test(`${fsType} is not made with ${text.slice(0, 40)}`, () => {
    assert.throws(() => parseFormatOptions(text, fsType), { code: 'INVALID_ARGUMENT', message: /formatOptions/ });
  });
}

test('whatever the options are, no word of them is a path or a device', () => {
  const types = ['ext4', 'ext2', 'xfs', 'btrfs', 'vfat', 'exfat', 'ntfs'];
  const word = fc.oneof(
    fc.constantFrom(
      '-d',
      '-J',
      '-E',
      '-L',
      '-m',
      '-l',
      '-K',
      '--csum=',
      'device=x',
      'etc',
      '/dev/sda',
      '"',
      "'",
      '\\',
      '-',
    ),
    fc.string({ maxLength: 6 }),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...types),
      fc.array(word, { maxLength: 6 }),
      fc.constantFrom(' ', ''),
      (fsType, parts, glue) => {
        let words: readonly string[];
        try {
          words = parseFormatOptions(parts.join(glue), fsType);
        } catch {
          return;
        }
        assert.ok(
          // A value may follow the letter of its option at once.
          words.every(
            (one) => !one.includes('/') && !/(?:^|,)\s*(?:device|offset)=/.test(one.replace(/^-[A-Za-z]/, '')),
          ),
          words.join('|'),
        );
        const { flags = '', valued = '', long = [] } = fileSystemNamed(fsType)?.ownOptions ?? {};
        const first = words[0] ?? '-K';
        assert.ok(`${flags}${valued}K`.includes(first[1] ?? ' ') || long.some((name) => first.startsWith(`--${name}`)));
      },
    ),
    { numRuns: 300 },
  );
});
