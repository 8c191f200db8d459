/** `driver: local-hostpath`: volumes are folders on a disk of this node and are bind-mounted where they are used. */
import * as v from 'valibot';
import { advertisedFrom, commonEntries } from '../../config/common.ts';
import type { Driver } from '../../core/driver.ts';
import { createNodePlane } from '../../node/plane.ts';
import { fileSystemRules } from '../common/capability-check.ts';
import { compileIdTemplate, loadTemplates } from '../common/id-template.ts';
import type { Directory } from '../directory/directory.ts';
import { directoryOperations } from '../directory/driver.ts';
import { localFiles } from '../directory/files.ts';
import { createHostView } from '../directory/host-view.ts';
import { mountPointsOf } from '../directory/in-use.ts';
import { layoutOf } from '../directory/layout.ts';
import { directoryEntries } from '../directory/options.ts';
import { partyOf } from '../directory/party.ts';
import { createProjectQuotas } from '../directory/project-quota.ts';
import type { DriverEnvironment, DriverType } from '../type.ts';

const block = v.object({
  ...directoryEntries,
  /**
   * `none`: a volume's size is a record, and it can fill the disk. `project`: a project quota of the file system keeps it to its size; the base
   * path must be on xfs or ext4 mounted with `prjquota`. It holds for volumes made from then on.
   */
  quota: v.optional(v.picklist(['none', 'project']), 'none'),
});

const schema = v.object({ ...commonEntries, 'local-hostpath': block });

type Options = v.InferOutput<typeof schema>;

const name = 'local-hostpath';

export const localHostpath: DriverType<Options> = {
  name,
  summary: 'directories on a disk of this node, bind-mounted',
  schema,
  example: { driver: name, [name]: { shareBasePath: '/var/lib/csi', controllerBasePath: '/var/lib/csi' } },
  async prepare(options) {
    if (options._private?.csi?.volume?.idTemplate) await loadTemplates();
  },
  create: createDriver,
};

function createDriver(options: Options, environment: DriverEnvironment): Driver {
  const { nodeId, nodeTopology, connection, stateDirectory, run } = environment;
  return {
    name,
    constrained: true,
    advertised: advertisedFrom(options),
    ...directoryOperations(directoryOf(options, environment)),
    node: createNodePlane({
      info: { nodeId, topology: nodeTopology },
      run,
      settings: options.node,
      accessModes: options.csi?.access_modes,
      connection,
      stateDirectory,
    }),
  };
}

function directoryOf(options: Options, environment: DriverEnvironment): Directory {
  const { run, log, maxIdBytes, nodeTopology } = environment;
  const { shareBasePath, controllerBasePath, quota } = options[name];
  const volume = options._private?.csi?.volume;
  const layout = layoutOf(controllerBasePath);
  const shared = layoutOf(shareBasePath);
  // Nodes see the base path as the host does, whose programs therefore may know it under that name only.
  const hostView = createHostView(controllerBasePath, [controllerBasePath, shareBasePath], run);
  return {
    layout,
    files: localFiles,
    hostView,
    run,
    log,
    options: options[name],
    naming: {
      maxBytes: maxIdBytes,
      template: volume?.idTemplate ? compileIdTemplate(volume.idTemplate) : undefined,
      hash: volume?.idHash?.strategy,
    },
    rules: fileSystemRules(['none'], options.csi?.access_modes),
    party: partyOf(environment, { instanceId: options.instance_id, perNode: true }),
    maxIdBytes,
    contextOf: (volumeId) => ({
      node_attach_driver: 'hostpath',
      path: shared.data('v', volumeId),
      provisioner_driver: name,
      ...(options.instance_id && { provisioner_driver_instance_id: options.instance_id }),
    }),
    node: nodeTopology,
    mountPointsOf,
    quotas: createProjectQuotas({ enforce: quota === 'project', layout, files: localFiles, hostView, run }),
    retain: volume?.deleteStrategy === 'retain',
  };
}
