/** The user properties by which datasets are known as volumes and snapshots: those of democratic-csi, whose volumes are ours as well, and two more. */

export const userProperties = {
  /** `true`; what lacks it is nobody's business here. */
  managed: 'democratic-csi:managed_resource',
  /** `true` when everything is done. */
  success: 'democratic-csi:provision_success',
  volumeName: 'democratic-csi:csi_volume_name',
  /** JSON: what nodes need of the share. */
  shareContext: 'democratic-csi:csi_share_volume_context',
  sourceType: 'democratic-csi:csi_volume_content_source_type',
  sourceId: 'democratic-csi:csi_volume_content_source_id',
  driver: 'democratic-csi:volume_context_provisioner_driver',
  instanceId: 'democratic-csi:volume_context_provisioner_instance_id',
  snapshotName: 'democratic-csi:csi_snapshot_name',
  snapshotSource: 'democratic-csi:csi_snapshot_source_volume_id',
  /** JSON: the parameters of the request. democratic-csi does not keep them. */
  parameters: 'switchboard:parameters',
  /** Bytes asked for, where no quota or volume size tells them. */
  size: 'switchboard:size',
} as const;

/** What temporary snapshots are called; the first is the origin of a clone for as long as that lives. */
export const forVolume = (volumeId: string) => `volume-source-for-volume-${volumeId}`;
export const forSnapshot = (snapshotName: string) => `volume-source-for-snapshot-${snapshotName}`;

/** Whether a snapshot was made for a copy, not for anybody to keep. */
export function isTemporary(snapshotName: string): boolean {
  return snapshotName.startsWith('volume-source-for-');
}

/** JSON of ASCII alone: `zfs get -j` has only four digits for a character. */
export function asciiJson(value: Readonly<Record<string, string>>): string {
  return JSON.stringify(value).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
