/** Which volume capabilities a driver accepts. */
import { CallError } from '../../core/errors.ts';
import type { AccessMode, VolumeCapability } from '../../core/volume.ts';

export interface CapabilityRules {
  /** Access modes accepted for mounted volumes. */
  readonly mount: ReadonlySet<AccessMode>;
  /** Access modes accepted for block volumes; undefined: no block volumes. */
  readonly block?: ReadonlySet<AccessMode> | undefined;
  /** File system types accepted. An empty one always is. */
  readonly fsTypes: ReadonlySet<string>;
}

const sharedFileSystem: readonly AccessMode[] = [
  'UNKNOWN',
  'SINGLE_NODE_WRITER',
  'SINGLE_NODE_SINGLE_WRITER',
  'SINGLE_NODE_MULTI_WRITER',
  'SINGLE_NODE_READER_ONLY',
  'MULTI_NODE_READER_ONLY',
  'MULTI_NODE_SINGLE_WRITER',
  'MULTI_NODE_MULTI_WRITER',
];

/** Rules of volumes that are file systems of the back end: mounted only, by any number of writers. `modes` replaces the accepted access modes. */
export function fileSystemRules(fsTypes: readonly string[], modes?: readonly AccessMode[]): CapabilityRules {
  return { mount: new Set(modes ?? sharedFileSystem), fsTypes: new Set(fsTypes) };
}

/**
 * Rules of volumes that are disks: several nodes may write to one only as a block device, since an ordinary file system would break.
 * `modes` replaces the accepted access modes.
 */
export function blockDeviceRules(fsTypes: readonly string[], modes?: readonly AccessMode[]): CapabilityRules {
  const mounted = sharedFileSystem.filter((mode) => mode !== 'MULTI_NODE_MULTI_WRITER');
  return { mount: new Set(modes ?? mounted), block: new Set(modes ?? sharedFileSystem), fsTypes: new Set(fsTypes) };
}

/** Why the driver cannot serve these capabilities, for people; undefined when it can. */
export function refusal(capabilities: readonly VolumeCapability[], rules: CapabilityRules): string | undefined {
  for (const capability of capabilities) {
    const why = refusalOfOne(capability, rules);
    if (why) return why;
  }
  return undefined;
}

/** Throws INVALID_ARGUMENT when the driver cannot serve these capabilities. */
export function requireCapabilities(capabilities: readonly VolumeCapability[], rules: CapabilityRules): void {
  const why = refusal(capabilities, rules);
  if (why) throw new CallError('INVALID_ARGUMENT', why);
}

function refusalOfOne(capability: VolumeCapability, rules: CapabilityRules): string | undefined {
  const modes = rules[capability.type];
  if (!modes) return `this driver has no ${capability.type} volumes`;
  if (!modes.has(capability.mode)) {
    return `access mode ${capability.mode} is not among the accepted ones (${[...modes].join(', ')})`;
  }
  if (capability.type === 'mount' && capability.fsType !== '' && !rules.fsTypes.has(capability.fsType)) {
    return `file system type ${JSON.stringify(capability.fsType)} is not among the accepted ones (${[...rules.fsTypes].join(', ')})`;
  }
  return undefined;
}
