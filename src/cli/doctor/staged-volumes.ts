/** What the node remembers of volumes that it staged, and what is left of those that are not there any more. */
import { join } from 'node:path/posix';
import { defaultTimeLimits } from '../../backends/exec/time-limits.ts';
import type { Attacher } from '../../node/attachers/attacher.ts';
import type { Mount } from '../../node/mount-table.ts';
import { makePlane } from '../../node/plane.ts';
import { findLeftovers, type Leftover } from '../../node/records/leftovers.ts';
import type { StagedRecord } from '../../node/records/record.ts';
import { isRecordName } from '../../node/records/record-name.ts';
import { type FoundRecord, foundRecord, recordsFolder } from '../../node/records/records.ts';
import { placeText, volumeText } from '../node/leftover-text.ts';
import { forEach, whyOf } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('mounts');

const label = 'staged volumes';
const advice = 'see and remove it: switchboard node cleanup';

/** How many files are read at once, and how many leftovers are told one by one. */
const limits = { atOnce: 8, shown: 20 } as const;

type Looks = Pick<Inspection, 'mounts' | 'files' | 'stateDirectory' | 'run' | 'call' | 'now' | 'modes'>;

export async function checkStagedVolumes(inspection: Looks): Promise<readonly Finding[]> {
  const { call, run, files, mounts, now } = inspection;
  const folder = recordsFolder(inspection.stateDirectory);
  const forgotten = forgetful(inspection);
  try {
    const names = ((await files.list(folder)) ?? []).filter(isRecordName);
    if (names.length === 0) return forgotten;
    const found = (await forEach(names, limits.atOnce, (name) => read(inspection, folder, name))).flatMap(
      (one) => one ?? [],
    );
    const tools = { run, limits: defaultTimeLimits, settings: {}, readTable: async () => mounts };
    const bootId = ((await files.read('/proc/sys/kernel/random/boot_id')) ?? '').trim();
    // Dead mounts are found by the check of all mounts.
    const look = { table: mounts, bootId, now: now(), deadMounts: false };
    const leftovers = (await findLeftovers(call, tools, found, look)).filter((one) => !(one.record && one.underWay));
    const { attachers } = makePlane({ run });
    const told = [...forgotten, ...tell(leftovers, folder, attachers), ...unrecorded(mounts.mounts, found)];
    return told.length > 0 ? told : [finding('ok', label, `${found.length} remembered: all mounted`)];
  } catch (error) {
    return [finding('warning', label, `${folder} cannot be read: ${whyOf(error)}`)];
  }
}

/** A container that keeps what it staged to itself takes that along when it goes. */
function forgetful({ mounts, stateDirectory, modes }: Looks): readonly Finding[] {
  const below = mounts.covering(stateDirectory);
  if (!modes.node || below === undefined || !/overlay|^aufs$/.test(below.fsType)) return [];
  const detail = `what is staged is remembered in ${stateDirectory}, which is this container’s own and goes with it`;
  return [
    finding(
      'warning',
      'state directory',
      detail,
      'set SWITCHBOARD_STATE_DIR to a directory of the host that is mounted here',
    ),
  ];
}

async function read({ files }: Looks, folder: string, name: string): Promise<FoundRecord | undefined> {
  const text = await files.read(join(folder, name));
  return text === undefined ? undefined : foundRecord(name, text);
}

function tell(
  leftovers: readonly Leftover[],
  folder: string,
  attachers: Readonly<Record<string, Attacher>>,
): readonly Finding[] {
  const attached = leftovers.filter(({ record, kind }) => {
    if (!record || kind === 'unknown') return true;
    const attacher = Object.hasOwn(attachers, record.attacher) ? attachers[record.attacher] : undefined;
    return record.identity !== undefined && (attacher === undefined || attacher.detach !== undefined);
  });
  const rest = leftovers.length - attached.length;
  const findings = attached.slice(0, limits.shown).map(({ name, record, kind, why }) => {
    if (!record) {
      const detail = `${join(folder, name)}: ${why}. What it tells of may still be attached`;
      return finding('warning', 'unreadable record', detail, advice);
    }
    if (kind === 'unknown') {
      return finding(
        'warning',
        volumeText(record),
        `whether it is in use cannot be told: ${placeText(record)}, ${why}`,
      );
    }
    return finding('warning', volumeText(record), `may still be attached: ${placeText(record)}, ${why}`, advice);
  });
  const more = attached.length - findings.length;
  if (more > 0) findings.push(finding('warning', label, `${more} more are left over`, advice));
  if (rest > 0) {
    const detail = `${rest} remembered that are not mounted any more; nothing of them is attached`;
    findings.push(
      finding('note', label, detail, 'a record goes when its volume is unstaged, or with: switchboard node cleanup'),
    );
  }
  return findings;
}

/** The folder that an orchestrator stages one plugin's volumes in. */
const stagingFolders = [
  /^(.*\/plugins\/kubernetes\.io\/csi\/[^/]+)\/[^/]+\/globalmount$/,
  /^(.*\/client\/csi\/.*\/staging)\//,
  /^(\/csi\/staging)\//,
  /^(.*\/data\/staged)\//,
];

/** Volumes beside those that have a record: unstaging them depends on what their devices tell. */
function unrecorded(mounts: readonly Mount[], found: readonly FoundRecord[]): readonly Finding[] {
  const records = found.flatMap(({ record }) => record ?? []);
  const places = new Set(records.map(({ place }) => place));
  const folders = new Set(records.flatMap(stagingFolder));
  const bare = mounts.filter(({ mountPoint }) => {
    const place = mountPoint.replace(/\/block_device$/, '');
    return !places.has(place) && stagingFolder({ place }).some((folder) => folders.has(folder));
  });
  if (bare.length === 0) return [];
  const detail = `${bare.length} without a record, such as ${bare[0]?.mountPoint}: staged by another program, or while no record could be kept`;
  return [
    finding(
      'note',
      'volumes without record',
      detail,
      'nothing need be done: when unstaged, they are known by their devices',
    ),
  ];
}

function stagingFolder({ place }: Pick<StagedRecord, 'place'>): readonly string[] {
  return stagingFolders.flatMap((pattern) => pattern.exec(place)?.[1] ?? []);
}
