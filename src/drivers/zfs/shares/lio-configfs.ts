/** Targets by the kernel's configfs itself, as targetcli makes them: in milliseconds. What targetcli saves is saved once afterwards. */
import { createHash } from 'node:crypto';
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import { listTargets, lookAtTarget } from './lio-look.ts';
import { oneAtATime, type TargetStrategy } from './target.ts';
import { type LioOptions, requireLine } from './targetcli.ts';

/**
 * Arguments: IQN, name, device, serial number. Input: lines of attrib, auth or block, a key and a value, with tabs between; a password among them is
 * in no argument.
 */
const create = `set -e
t=/sys/kernel/config/target; iqn=$1 name=$2 device=$3 serial=$4
tab=$(printf '\\t')
[ -d "$t/iscsi" ] || mkdir "$t/iscsi"
store=$(ls -d "$t"/core/iblock_*/"$name" 2>/dev/null | head -n 1)
if [ -z "$store" ]; then
  n=0
  until mkdir "$t/core/iblock_$n" 2>/dev/null; do n=$((n+1)); [ $n -lt 100000 ]; done
  store=$t/core/iblock_$n/$name
  mkdir "$store"
fi
if [ "$(cat "$store/enable")" != 1 ]; then
  printf 'udev_path=%s' "$device" >"$store/control"
  printf %s "$device" >"$store/udev_path"
  printf %s "$serial" >"$store/wwn/vpd_unit_serial"
  echo 1 >"$store/enable"
fi
g=$t/iscsi/$iqn/tpgt_1
mkdir -p "$g/lun/lun_0"
while IFS=$tab read -r group key value; do
  case $group in block) f=$store/attrib/$key ;; *) f=$g/$group/$key ;; esac
  [ "$(cat "$f")" = "$value" ] || printf %s "$value" >"$f"
done
ls "$g/lun/lun_0"/*/udev_path >/dev/null 2>&1 || ln -s "$store" "$g/lun/lun_0/$(printf %s "$serial" | cut -c1-10)"
ls -d "$g/np"/* >/dev/null 2>&1 || mkdir "$g/np/[::0]:3260" 2>/dev/null || mkdir "$g/np/0.0.0.0:3260"
[ "$(cat "$g/enable")" = 1 ] || echo 1 >"$g/enable"`;

const remove = `t=/sys/kernel/config/target; iqn=$1 name=$2; g=$t/iscsi/$iqn/tpgt_1
if [ -d "$t/iscsi/$iqn" ]; then
  [ ! -e "$g/enable" ] || echo 0 >"$g/enable"
  for a in "$g"/acls/*; do
    [ -d "$a" ] || continue
    for l in "$a"/lun_*; do [ ! -d "$l" ] || { find "$l" -type l -exec rm {} +; rmdir "$l"; }; done
    rmdir "$a"
  done
  for l in "$g"/lun/lun_*; do [ ! -d "$l" ] || { find "$l" -maxdepth 1 -type l -exec rm {} +; rmdir "$l"; }; done
  for p in "$g"/np/*; do [ ! -d "$p" ] || rmdir "$p"; done
  [ ! -d "$g" ] || rmdir "$g"
  rmdir "$t/iscsi/$iqn"
fi
for s in "$t"/core/*/"$name"; do
  [ -d "$s" ] || continue
  for p in "$s"/alua/*; do [ ! -d "$p" ] || [ "\${p##*/}" = default_tg_pt_gp ] || rmdir "$p"; done
  rmdir "$s"; rmdir "\${s%/*}"
done`;

export function lioConfigfsStrategy(zfs: ZfsHost, options: LioOptions): TargetStrategy {
  const save = { argv: oneAtATime(zfs, 'targetctl', 'save') };
  return {
    create: ({ qualifiedName, name, device }) => [
      {
        argv: oneAtATime(zfs, 'sh', '-c', create, 'sh', qualifiedName, name, device, serialOf(qualifiedName)),
        input: settings(options),
      },
      save,
    ],
    remove: ({ qualifiedName, name }) => [
      { argv: oneAtATime(zfs, 'sh', '-c', remove, 'sh', qualifiedName, name) },
      save,
    ],
    look: (target) => lookAtTarget(zfs, target),
    list: listTargets(zfs),
  };
}

/** In the form of a UUID, which is what targetcli draws. The same after it was lost: multipath knows disks by it. */
function serialOf(qualifiedName: string): string {
  const digits = createHash('sha256').update(qualifiedName).digest('hex');
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20, 32),
  ].join('-');
}

function settings({ tpg, block }: LioOptions): string {
  const lines = (group: string, values: Readonly<Record<string, string>> | undefined) =>
    Object.entries(values ?? {}).map(([key, value]) => requireLine(`${group}\t${key.replaceAll('/', '')}\t${value}`));
  return [
    ...lines('attrib', tpg?.attributes),
    ...lines('auth', tpg?.auth),
    ...lines('block', block?.attributes),
    '',
  ].join('\n');
}
