import type { Step } from '../../backends/shell/steps.ts';
import type { ZfsStore } from './store.ts';

/** The commands that give a volume's root directory its mode, owner and ACL. */
export function permissionSteps({ zfs, options, kind }: ZfsStore, path: string): readonly Step[] {
  if (kind === 'volume') return [];
  const { datasetPermissionsMode: mode, datasetPermissionsUser: user, datasetPermissionsGroup: group } = options;
  const owner = [user ?? '', group === undefined ? '' : `:${group}`].join('');
  return [
    ...(owner === '' ? [] : [zfs.program('chown', owner, '--', path)]),
    ...(mode === undefined ? [] : [zfs.program('chmod', mode.toString(8).padStart(4, '0'), '--', path)]),
    ...(options.datasetPermissionsAcls ?? []).map((entry) =>
      zfs.program(options.datasetPermissionsAclsBinary, ...entry.split(/\s+/).filter((word) => word !== ''), path),
    ),
  ].map((argv) => ({ argv }));
}
