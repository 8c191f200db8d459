/** Targets by targetcli(8): it reads commands, exits with 0 whatever happens, and saves everything when it ends. */
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import { CallError } from '../../../core/errors.ts';
import { listTargets, lookAtTarget } from './lio-look.ts';
import { oneAtATime, type TargetStrategy } from './target.ts';

export interface LioOptions {
  readonly tpg?: { readonly attributes?: Values; readonly auth?: Values } | undefined;
  readonly block?: { readonly attributes?: Values } | undefined;
}

type Values = Readonly<Record<string, string>> | undefined;

export function targetcliStrategy(zfs: ZfsHost, options: LioOptions): TargetStrategy {
  const run = (lines: readonly string[]) => ({
    argv: oneAtATime(zfs, 'targetcli'),
    input: lines.map((line) => `${requireLine(line)}\n`).join(''),
  });
  return {
    create: ({ qualifiedName: iqn, name, device }) => [
      run([
        'cd /iscsi',
        `create ${iqn}`,
        `cd /iscsi/${iqn}/tpg1`,
        ...assignments('attribute', options.tpg?.attributes),
        ...assignments('auth', options.tpg?.auth),
        'cd /backstores/block',
        `create ${name} ${device}`,
        `cd /backstores/block/${name}`,
        ...assignments('attribute', options.block?.attributes),
        `cd /iscsi/${iqn}/tpg1/luns`,
        `create /backstores/block/${name} 0`,
      ]),
    ],
    remove: ({ qualifiedName: iqn, name }) => [
      run(['cd /iscsi', `delete ${iqn}`, 'cd /backstores/block', `delete ${name}`]),
    ],
    look: (target) => lookAtTarget(zfs, target),
    list: listTargets(zfs),
  };
}

function assignments(group: string, values: Values): readonly string[] {
  return Object.entries(values ?? {}).map(([key, value]) => `set ${group} ${key}=${value}`);
}

/** Throws INVALID_ARGUMENT for a text of more than one line. */
export function requireLine(line: string): string {
  if (!/[\n\r\0]/.test(line)) return line;
  throw new CallError('INVALID_ARGUMENT', 'a setting of the target has a line end in it');
}
