import type { Secrets } from '../core/call.ts';
import { CallError } from '../core/errors.ts';
import type { VolumeContext } from '../core/volume.ts';
import { splitFlags } from './mount-options.ts';

const prefix = 'democratic-csi.org/';

/**
 * A secret of a node call. One named for the volume's driver is preferred to a general one, and one named for its instance to both:
 * `mount_flags`, `democratic-csi.org/mount_flags`, `democratic-csi.org/<driver>/mount_flags`, `democratic-csi.org/<instance>/mount_flags`.
 */
export function nodeSecret(secrets: Secrets, context: VolumeContext, key: string): string | undefined {
  const owners = [context.provisioner_driver_instance_id, context.provisioner_driver].filter(Boolean);
  const names = [...owners.map((owner) => `${prefix}${owner}/${key}`), `${prefix}${key}`, key];
  const name = names.find((one) => Object.hasOwn(secrets, one));
  return name && secrets[name];
}

/**
 * Mount options from the secret `mount_flags`, for volumes that need no credentials to be mounted. They end in an argument vector, so that nothing
 * that looks like a credential is taken: throws INVALID_ARGUMENT without repeating it.
 */
export function secretFlags(secrets: Secrets, context: VolumeContext): readonly string[] {
  const flags = splitFlags([nodeSecret(secrets, context, 'mount_flags') ?? '']);
  if (!flags.some((flag) => /pass|cred|secret|token|key/i.test(flag))) return flags;
  throw new CallError('INVALID_ARGUMENT', 'the secret mount_flags has credentials, which this volume does not take');
}
