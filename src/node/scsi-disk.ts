/** SCSI disks as sysfs shows them. Nothing here touches the disk. */
import { lunOfCode } from './scsi-lun.ts';
import { namesIn, textOf } from './sysfs.ts';

export interface ScsiUnit {
  /** `host:channel:target:lun` */
  readonly address: string;
  readonly lun: number | undefined;
  /** Its directory in sysfs. */
  readonly directory: string;
}

export interface ScsiDisk extends ScsiUnit {
  /** The kernel's name: `sda`. */
  readonly name: string;
  /** `major:minor` */
  readonly number: string;
  /** Zero: it has no medium, or does not answer. */
  readonly bytes: number;
  /** `naa.6001405…`; undefined: it does not tell. */
  readonly wwid: string | undefined;
  /** `running`, `offline` … */
  readonly state: string;
}

/** What is attached below a directory of sysfs, such as that of an iSCSI session. */
export async function unitsBelow(directory: string): Promise<readonly ScsiUnit[]> {
  const targets = (await namesIn(directory)).filter((name) => /^target\d+:\d+:\d+$/.test(name));
  const units = targets.map(async (target) => {
    const addresses = (await namesIn(`${directory}/${target}`)).filter((name) => /^\d+:\d+:\d+:\d+$/.test(name));
    return addresses.map((address) => ({
      address,
      lun: lunOfCode(Number(address.split(':')[3])),
      directory: `${directory}/${target}/${address}`,
    }));
  });
  return (await Promise.all(units)).flat();
}

/** The disk of a unit; undefined while it has none: it is just being made or removed, or it is of another kind. */
export async function diskOf(unit: ScsiUnit): Promise<ScsiDisk | undefined> {
  const [name] = await namesIn(`${unit.directory}/block`);
  if (name === undefined) return undefined;
  const read = async (file: string) => (await textOf(`${unit.directory}/${file}`)) ?? '';
  const [number, sectors, wwid, state] = await Promise.all([
    read(`block/${name}/dev`),
    read(`block/${name}/size`),
    read('wwid'),
    read('state'),
  ]);
  if (!number) return undefined;
  return { ...unit, name, number, bytes: Number(sectors) * 512, wwid: wwid || undefined, state };
}

/** The identifier of a disk as multipath has it: that of udev's scsi_id. */
export function multipathId(wwid: string): string {
  const [, kind, rest = ''] = /^(naa|eui|t10)\.(.*)$/s.exec(wwid) ?? [];
  if (kind === 'naa') return `3${rest}`;
  return kind === 'eui' ? `2${rest}` : `1${rest.replace(/\s+/g, '_')}`;
}
