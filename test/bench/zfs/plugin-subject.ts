/** This program, on this machine in the guest's network, as a controller that reaches its storage over SSH. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type * as csi from '../../../src/generated/csi.js';
import type { Init } from '../../../src/generated/csi.js';
import { services } from '../../../src/generated/services.js';
import type { Program } from '../../conformance/programs.ts';
import { connect } from '../client.ts';
import { launch } from '../launch.ts';
import { parent, type Storage } from './storage.ts';
import { shareOptions, volumeBytes, type ZfsSubject } from './subject.ts';

const { Controller } = services;

const volumeCapability = {
  mount: { fsType: 'nfs' },
  accessMode: { mode: 1 },
} as const satisfies Init<csi.VolumeCapability>;

export async function pluginSubject(storage: Storage, program: Program, folder: string): Promise<ZfsSubject> {
  const socket = join(folder, 'csi.sock');
  const config = join(folder, 'zfs.yaml');
  await writeFile(config, configuration(storage));
  const args = ['serve', '--driver-config-file', config, '--server-socket', socket, '--csi-name', 'bench.csi'];
  const { inside } = storage.guest.network;
  const command = [...inside, ...program, ...args];
  const subject = {
    name: 'switchboard',
    parameters: {},
    prepare: async () => ({ command, endpoint: `unix://${socket}` }),
  };
  const { plugin, program: running } = await launch(subject, folder);
  const client = connect(plugin.endpoint);
  const create = (name: string) =>
    client.call(Controller.CreateVolume, {
      name,
      capacityRange: { requiredBytes: volumeBytes, limitBytes: 0 },
      volumeCapabilities: [volumeCapability],
      parameters: {},
    });
  return {
    name: subject.name,
    pid: plugin.pid,
    create,
    createAgain: create,
    remove: (volumeId) => client.call(Controller.DeleteVolume, { volumeId }),
    capacity: () => client.call(Controller.GetCapacity, { volumeCapabilities: [volumeCapability] }),
    list: () => client.call(Controller.ListVolumes, {}),
    async listTwoPages() {
      const { nextToken: startingToken } = await client.call(Controller.ListVolumes, { maxEntries: 100 });
      if (startingToken !== '') await client.call(Controller.ListVolumes, { maxEntries: 100, startingToken });
    },
    async close() {
      client.close();
      await running.stop(5000);
    },
  };
}

const configuration = ({ guest, port, keyFile }: Storage) => `driver: zfs-generic-nfs
instance_id: bench
sshConnection:
  host: ${guest.address}
  port: ${port}
  username: root
  privateKeyFile: ${keyFile}
zfs:
  datasetParentName: ${parent}
  detachedSnapshotsDatasetParentName: tank/s
  datasetEnableQuotas: true
  datasetPermissionsMode: "0777"
  datasetPermissionsUser: 1000
  datasetPermissionsGroup: 1000
nfs:
  shareHost: ${guest.address}
  shareStrategySetDatasetProperties: { properties: { sharenfs: "${shareOptions}" } }
`;
