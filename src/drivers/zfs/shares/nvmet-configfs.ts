/** Subsystems by the kernel's configfs itself: in milliseconds. `saveCommand` keeps them over a reboot. */
import { createHash } from 'node:crypto';
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import { listSubsystems, lookAtSubsystem } from './nvmet-look.ts';
import type { NvmetOptions } from './nvmetcli.ts';
import { oneAtATime, type TargetStrategy } from './target.ts';
import { requireLine } from './targetcli.ts';

/** Arguments: NQN, device, UUID, ports. Input: lines of an attribute and its value, with a tab between. */
const create = `set -e
n=/sys/kernel/config/nvmet nqn=$1 device=$2 uuid=$3; shift 3; s=$n/subsystems/$nqn
[ -d "$s" ] || mkdir "$s"
tab=$(printf '\\t')
while IFS=$tab read -r key value; do [ "$(cat "$s/attr_$key")" = "$value" ] || printf %s "$value" >"$s/attr_$key"; done
ns=$s/namespaces/1
[ -d "$ns" ] || mkdir "$ns"
if [ "$(cat "$ns/enable")" != 1 ]; then
  printf %s "$device" >"$ns/device_path"
  printf %s "$uuid" >"$ns/device_uuid"
  echo 1 >"$ns/enable"
fi
for port; do [ -e "$n/ports/$port/subsystems/$nqn" ] || ln -s "$s" "$n/ports/$port/subsystems/$nqn"; done`;

const remove = `n=/sys/kernel/config/nvmet nqn=$1; s=$n/subsystems/$nqn
for p in "$n"/ports/*/subsystems/"$nqn"; do [ ! -e "$p" ] || rm "$p"; done
[ -d "$s" ] || exit 0
for ns in "$s"/namespaces/*; do [ ! -d "$ns" ] || { echo 0 >"$ns/enable"; rmdir "$ns"; }; done
for h in "$s"/allowed_hosts/*; do [ ! -L "$h" ] || rm "$h"; done
rmdir "$s"`;

/** The same after it was lost: nodes know namespaces by it. */
function uuidOf(nqn: string): string {
  const digits = createHash('sha256').update(nqn).digest('hex');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20, 32)}`;
}

export function nvmetConfigfsStrategy(
  zfs: ZfsHost,
  options: NvmetOptions,
  saveCommand: readonly string[],
): TargetStrategy {
  const { ports, subsystem } = options;
  const attributes = Object.entries(subsystem?.attributes ?? {});
  const input = attributes.map(([key, value]) => `${requireLine(`${key.replaceAll('/', '')}\t${value}`)}\n`).join('');
  const save = saveCommand.length > 0 ? [{ argv: oneAtATime(zfs, ...saveCommand) }] : [];
  return {
    create: ({ qualifiedName: nqn, device }) => [
      { argv: oneAtATime(zfs, 'sh', '-c', create, 'sh', nqn, device, uuidOf(nqn), ...ports), input },
      ...save,
    ],
    remove: ({ qualifiedName: nqn }) => [{ argv: oneAtATime(zfs, 'sh', '-c', remove, 'sh', nqn) }, ...save],
    look: (target) => lookAtSubsystem(zfs, target, ports),
    list: listSubsystems(zfs),
  };
}
