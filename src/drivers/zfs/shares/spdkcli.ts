/** Subsystems of SPDK by its spdkcli: https://spdk.io/doc/spdkcli.html. Nothing of them is in the kernel, so spdkcli itself is asked. */
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import { oneAtATime, type TargetStrategy } from './target.ts';
import { requireLine } from './targetcli.ts';

export interface SpdkOptions {
  readonly spdkcliPath: string;
  readonly configPath?: string | undefined;
  readonly bdev: { readonly type: string; readonly attributes?: Values };
  readonly subsystem?: { readonly attributes?: Values } | undefined;
  readonly listeners: readonly Readonly<Record<string, string>>[];
}

type Values = Readonly<Record<string, string>> | undefined;

/** Arguments: the program, the bdev's type, NQN, device. The codes are those of `lookCodes`. */
const look = `cli=$1 type=$2 nqn=$3 device=$4
subsystems=$("$cli" ls /nvmf/subsystem 2>/dev/null) bdevs=$("$cli" ls "/bdevs/$type" 2>/dev/null)
in_subsystems=no in_bdevs=no
case "$subsystems" in *" $nqn "*) in_subsystems=yes ;; esac
case "$bdevs" in *" $nqn "*) in_bdevs=yes ;; esac
[ $in_subsystems$in_bdevs != nono ] || { echo absent; exit 4; }
[ $in_subsystems$in_bdevs = yesyes ] || { echo "subsystem: $in_subsystems, bdev: $in_bdevs"; exit 5; }
echo present`;

export function spdkcliStrategy(zfs: ZfsHost, options: SpdkOptions): TargetStrategy {
  const { spdkcliPath, configPath, bdev, subsystem, listeners } = options;
  const save = ['cd /', configPath ? `save_config filename=${configPath}` : 'save_config'];
  const run = (lines: readonly string[]) => ({
    argv: oneAtATime(zfs, spdkcliPath),
    input: [...lines, ...save, 'exit'].map((line) => `${requireLine(line)}\n`).join(''),
  });
  return {
    create: ({ qualifiedName: nqn, device }) => [
      run([
        `cd /bdevs/${bdev.type}`,
        words('create', `filename=${device}`, `name=${nqn}`, ...pairs(bdev.attributes)),
        'cd /nvmf/subsystem',
        words('create', `nqn=${nqn}`, ...pairs(subsystem?.attributes)),
        `cd /nvmf/subsystem/${nqn}/namespaces`,
        `create bdev_name=${nqn} nsid=1`,
        `cd /nvmf/subsystem/${nqn}/listen_addresses`,
        ...listeners.map((listener) => words('create', ...pairs(listener))),
      ]),
    ],
    remove: ({ qualifiedName: nqn }) => [
      run(['cd /nvmf/subsystem', `delete subsystem_nqn=${nqn}`, `cd /bdevs/${bdev.type}`, `delete name=${nqn}`]),
    ],
    look: ({ qualifiedName: nqn, device }) => zfs.program('sh', '-c', look, 'sh', spdkcliPath, bdev.type, nqn, device),
  };
}

function pairs(values: Values): readonly string[] {
  return Object.entries(values ?? {}).map(([key, value]) => `${key}=${value}`);
}

function words(...parts: readonly string[]): string {
  return parts.join(' ');
}
