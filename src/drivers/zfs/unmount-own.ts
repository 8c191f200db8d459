import type { Step } from '../../backends/shell/steps.ts';
import { type Dataset, valueIn } from '../../backends/zfs/dataset.ts';
import type { ZfsStore } from './store.ts';

/**
 * Arguments: the dataset and its mount point as they are in the table of mounts, the command that unmounts. The last one of several at a place is what
 * the command would unmount: nothing is done when that is something else. Where there is no table, ZFS is believed.
 */
const body = `own=$1 place=$2; shift 2
if seen=$(grep -F -- " $place " /proc/self/mounts); then
  last=\${seen##*
}
  [ "\${last%% *}" = "$own" ] || { echo "\${last%% *} is mounted over it"; return 0; }
elif [ -r /proc/self/mounts ]; then return 0
fi
"$@"`;

/** Takes a file system from its mount point, if it is there. `options`: of umount. */
export function unmountOwn({ zfs }: ZfsStore, volume: Dataset, ...options: readonly string[]): readonly Step[] {
  const path = valueIn(volume, 'mountpoint');
  if (!path?.startsWith('/') || valueIn(volume, 'mounted') !== 'yes') return [];
  const unmount = zfs.program('umount', ...options, '--', path);
  return [{ argv: [inTable(volume.name), inTable(path), ...unmount], body }];
}

/** proc(5), fstab(5): four characters are written as octal numbers. */
function inTable(text: string): string {
  return text.replace(/[ \t\n\\]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`);
}
