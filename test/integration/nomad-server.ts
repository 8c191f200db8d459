/** A Nomad server's registry of volumes: which controller it calls for which command, and with what. */
import assert from 'node:assert/strict';
import { CallError } from '../../src/core/errors.ts';
import type { Init, VolumeCapability } from '../../src/generated/csi.js';
import { services } from '../../src/generated/services.js';
import { capabilityOf, isIgnorable, type RegisteredVolume, readOnly, readWrite, type Usage } from './nomad-client.ts';
import type { Plugin } from './nomad-plugin.ts';

const { Controller } = services;
const deadlineMs = 120_000;

export interface VolumeFile {
  readonly id: string;
  readonly bytes?: number;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly snapshotId?: string;
  readonly cloneId?: string;
}

export interface NomadServer {
  create(file: VolumeFile): Promise<RegisteredVolume>;
  register(volume: RegisteredVolume, parameters?: Readonly<Record<string, string>>): Promise<void>;
  /** `nomad volume create` of a file whose id exists, with a larger capacity. True: nodes are to expand it too. */
  expand(volume: RegisteredVolume, bytes: number): Promise<boolean>;
  delete(volume: RegisteredVolume): Promise<void>;
  snapshot(volume: RegisteredVolume, name: string): Promise<string>;
  deleteSnapshot(id: string): Promise<void>;
  external(): Promise<readonly string[]>;
  /** Gives the publish context, empty where the plugin publishes nothing. */
  claim(volume: RegisteredVolume, nodeId: string, usage: Usage): Promise<Record<string, string>>;
  release(volume: RegisteredVolume, nodeId: string): Promise<void>;
}

/** Another controller for each call, as chance would have it with Nomad. */
export function nomadServer(controllers: readonly Plugin[]): NomadServer {
  let next = 0;
  const pick = (): Plugin => {
    const controller = controllers[next++ % controllers.length];
    assert.ok(controller, 'no controller is there');
    return controller;
  };
  const volumeCapabilities: Init<VolumeCapability>[] = [readWrite, readOnly].map(capabilityOf);

  return {
    async create({ id, bytes, parameters = { connection: 'local' }, snapshotId, cloneId }) {
      const controller = pick();
      assert.ok(controller.controllerCan.has('CREATE_DELETE_VOLUME'));
      const { volume } = await controller.call(
        Controller.CreateVolume,
        {
          name: id,
          capacityRange: { requiredBytes: bytes ?? 0, limitBytes: 0 },
          volumeCapabilities,
          parameters,
          ...(snapshotId !== undefined && { volumeContentSource: { snapshot: { snapshotId } } }),
          ...(cloneId !== undefined && { volumeContentSource: { volume: { volumeId: cloneId } } }),
        },
        deadlineMs,
      );
      assert.ok(volume);
      return { id, namespace: 'default', externalId: volume.volumeId, context: { ...volume.volumeContext } };
    },
    async register({ externalId, context }, parameters = {}) {
      const { confirmed, message } = await pick().call(
        Controller.ValidateVolumeCapabilities,
        { volumeId: externalId, volumeContext: context, volumeCapabilities, parameters },
        deadlineMs,
      );
      assert.equal(confirmed?.volumeCapabilities.length, volumeCapabilities.length, message);
    },
    async expand({ externalId }, bytes) {
      const answer = await pick().call(
        Controller.ControllerExpandVolume,
        { volumeId: externalId, capacityRange: { requiredBytes: bytes }, volumeCapability: capabilityOf(readWrite) },
        deadlineMs,
      );
      assert.equal(answer.capacityBytes, bytes);
      return answer.nodeExpansionRequired;
    },
    async delete({ externalId }) {
      await pick().call(Controller.DeleteVolume, { volumeId: externalId }, deadlineMs);
    },
    async snapshot({ externalId }, name) {
      const request = { sourceVolumeId: externalId, name };
      const { snapshot } = await pick().call(Controller.CreateSnapshot, request, deadlineMs);
      assert.ok(snapshot?.readyToUse);
      return snapshot.snapshotId;
    },
    async deleteSnapshot(snapshotId) {
      await pick().call(Controller.DeleteSnapshot, { snapshotId }, deadlineMs);
    },
    async external() {
      const { entries } = await pick().call(Controller.ListVolumes, {}, deadlineMs);
      return entries.flatMap(({ volume }) => volume?.volumeId ?? []);
    },
    async claim({ externalId, context }, nodeId, usage) {
      const controller = pick();
      if (!controller.controllerCan.has('PUBLISH_UNPUBLISH_VOLUME')) return {};
      const { publishContext } = await controller.call(
        Controller.ControllerPublishVolume,
        {
          volumeId: externalId,
          nodeId,
          volumeCapability: capabilityOf(usage),
          volumeContext: context,
          readonly: usage.readonly,
        },
        deadlineMs,
      );
      return { ...publishContext };
    },
    async release({ externalId }, nodeId) {
      const controller = pick();
      if (!controller.controllerCan.has('PUBLISH_UNPUBLISH_VOLUME')) return;
      await controller
        .call(Controller.ControllerUnpublishVolume, { volumeId: externalId, nodeId }, deadlineMs)
        .catch((error: unknown) => {
          if (!(error instanceof CallError && isIgnorable(error))) throw error;
        });
    },
  };
}
