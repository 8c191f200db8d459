import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import type { Target } from './target.ts';

/** What the kernel has of a subsystem (drivers/nvme/target/configfs.c). The codes are those of `lookCodes`. Arguments: NQN, device, ports. */
const script = `n=/sys/kernel/config/nvmet nqn=$1 device=$2; shift 2; s=$n/subsystems/$nqn
[ -d "$s" ] || { echo absent; exit 4; }
shown=$(cat "$s/namespaces/1/device_path" 2>/dev/null)
case $shown in "$device" | '' | '(null)') ;; *) echo "the name is taken by $shown"; exit 3 ;; esac
[ "$shown" = "$device" ] || { echo "there is no namespace 1"; exit 5; }
[ "$(cat "$s/namespaces/1/enable")" = 1 ] || { echo "namespace 1 is not enabled"; exit 5; }
for port; do [ -e "$n/ports/$port/subsystems/$nqn" ] || { echo "it is not on port $port"; exit 5; }; done
echo present`;

export function lookAtSubsystem(
  zfs: ZfsHost,
  { qualifiedName, device }: Target,
  ports: readonly string[],
): readonly string[] {
  return zfs.program('sh', '-c', script, 'sh', qualifiedName, device, ...ports);
}

/** Block devices of all subsystems. */
const listing = `for u in /sys/kernel/config/nvmet/subsystems/*/namespaces/1/device_path; do
  d=; read -r d <"$u" 2>/dev/null; [ -n "$d" ] || continue
  s=\${u%/namespaces/1/device_path}; printf '%s\\t-\\t%s\\n' "\${s##*/}" "$d"
done
exit 0`;

export function listSubsystems(zfs: ZfsHost): readonly string[] {
  return zfs.program('sh', '-c', listing);
}
