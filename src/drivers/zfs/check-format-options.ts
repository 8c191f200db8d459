import type { VolumeSpec } from '../../core/volume.ts';
import { formatOptions, parseFormatOptions } from '../../node/file-systems/format-options.ts';
import { parameter } from '../common/parameters.ts';
import type { ZfsStore } from './store.ts';

/** Throws INVALID_ARGUMENT for options of the class with which no node would make the file system that is asked for. */
export function checkFormatOptions({ kind, driver, instanceId }: ZfsStore, spec: VolumeSpec): void {
  const text = kind === 'volume' ? parameter(spec.parameters, formatOptions, { driver, instanceId }) : undefined;
  if (text === undefined) return;
  for (const one of spec.capabilities) if (one.type === 'mount') parseFormatOptions(text, one.fsType);
}
