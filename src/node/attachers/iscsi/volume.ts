import { CallError } from '../../../core/errors.ts';
import type { VolumeContext } from '../../../core/volume.ts';
import { highestLun } from '../../scsi-lun.ts';
import type { Identity } from '../attacher.ts';
import { isSamePortal, type Portal, parsePortal } from './portal.ts';

/** A volume as its context describes it. */
export interface IscsiVolume {
  readonly iqn: string;
  readonly lun: number;
  /** At least one; each once. */
  readonly portals: readonly Portal[];
  /** The record of iscsiadm's that says by which network interface to connect. Undefined: whichever the routes say. */
  readonly interface?: string | undefined;
  /** As it was given. */
  readonly context: VolumeContext;
}

/** What tells volumes apart: a target's name is unique in the world, wherever it listens. */
export interface IscsiIdentity extends Identity {
  readonly iqn: string;
  readonly lun: string;
}

/** Throws INVALID_ARGUMENT for a context that lacks something. */
export function volumeOf(context: VolumeContext): IscsiVolume {
  const { iqn, lun } = parseIdentity({ iqn: context.iqn ?? '', lun: context.lun ?? '' });
  const texts = [context.portal ?? '', ...(context.portals ?? '').split(',')].filter((text) => text.trim() !== '');
  const portals: Portal[] = [];
  for (const portal of texts.map(parsePortal)) {
    if (!portals.some((one) => isSamePortal(one, portal))) portals.push(portal);
  }
  if (portals.length === 0) {
    throw new CallError('INVALID_ARGUMENT', 'the volume context has neither `portal` nor `portals`');
  }
  return { iqn, lun, portals, interface: interfaceOf(context), context };
}

/** Volumes are often given an empty one, or the one that there always is. */
function interfaceOf({ interface: name = '' }: VolumeContext): string | undefined {
  if (name === '' || name === 'default') return undefined;
  if (/^[A-Za-z0-9][A-Za-z0-9._:-]{0,64}$/.test(name)) return name;
  throw new CallError(
    'INVALID_ARGUMENT',
    `the volume context's \`interface\` ${JSON.stringify(name.slice(0, 80))} is no name`,
  );
}

/** Target names are equal whatever their case (RFC 3722), and targets are told theirs as it was given. */
export function identityOf({ iqn, lun }: Pick<IscsiVolume, 'iqn' | 'lun'>): IscsiIdentity {
  return { iqn: iqn.toLowerCase(), lun: String(lun) };
}

/** Throws INVALID_ARGUMENT for what is no target's name (RFC 7143, 4.2.7) or no LUN. */
export function parseIdentity(identity: Identity): Pick<IscsiVolume, 'iqn' | 'lun'> {
  const { iqn = '', lun = '' } = identity;
  if (!iqn) throw new CallError('INVALID_ARGUMENT', 'the volume context has no `iqn`');
  // It becomes the name of a folder, too.
  if (!/^(iqn|eui|naa)\.[A-Za-z0-9.:_-]{1,219}$/i.test(iqn)) {
    throw new CallError('INVALID_ARGUMENT', `${JSON.stringify(iqn.slice(0, 100))} is no name of an iSCSI target`);
  }
  const number = /^\d{1,8}$/.test(lun) ? Number(lun) : Number.NaN;
  if (number <= highestLun) return { iqn, lun: number };
  const what =
    lun === '' ? 'has no `lun`' : `has the \`lun\` ${JSON.stringify(lun.slice(0, 20))}, which is no number of a LUN`;
  throw new CallError('INVALID_ARGUMENT', `the volume context ${what}`);
}
