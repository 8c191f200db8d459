import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import type { Target } from './target.ts';

/** What the kernel has of a target: https://docs.kernel.org/target/. The codes are those of `lookCodes`. */
const script = `t=/sys/kernel/config/target; iqn=$1 name=$2 device=$3
store=$(cat "$t"/core/*/"$name"/udev_path 2>/dev/null)
lun=$(cat "$t/iscsi/$iqn/tpgt_1/lun/lun_0"/*/udev_path 2>/dev/null)
for shown in "$store" "$lun"; do
  [ -z "$shown" ] || [ "$shown" = "$device" ] || { echo "the name is taken by $shown"; exit 3; }
done
[ -d "$t/iscsi/$iqn" ] || ls -d "$t"/core/*/"$name" >/dev/null 2>&1 || { echo absent; exit 4; }
[ -n "$lun" ] || { echo "there is no LUN 0"; exit 5; }
[ "$(cat "$t/iscsi/$iqn/tpgt_1/enable")" = 1 ] || { echo "the target is not enabled"; exit 5; }
ls -d "$t/iscsi/$iqn/tpgt_1/np"/* >/dev/null 2>&1 || { echo "the target has no portal"; exit 5; }
echo present`;

export function lookAtTarget(zfs: ZfsHost, { qualifiedName, name, device }: Target): readonly string[] {
  return zfs.program('sh', '-c', script, 'sh', qualifiedName, name, device);
}

/** Block devices of all backstores, and of the LUNs of all targets. */
const listing = `t=/sys/kernel/config/target
for u in "$t"/core/*/*/udev_path; do
  d=; read -r d <"$u" 2>/dev/null; [ -n "$d" ] || continue
  s=\${u%/udev_path}; printf -- '-\\t%s\\t%s\\n' "\${s##*/}" "$d"
done
for u in "$t"/iscsi/*/tpgt_1/lun/lun_0/*/udev_path; do
  d=; read -r d <"$u" 2>/dev/null; [ -n "$d" ] || continue
  i=\${u#"$t"/iscsi/}; printf '%s\\t-\\t%s\\n' "\${i%%/*}" "$d"
done
exit 0`;

export function listTargets(zfs: ZfsHost): readonly string[] {
  return zfs.program('sh', '-c', listing);
}
