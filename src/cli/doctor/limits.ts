/** What runs out. */
import { dirname } from 'node:path/posix';
import { formatSize } from '../../core/sizes.ts';
import { mayHang } from '../../node/file-system-kind.ts';
import { whyOf } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('limits');

/** Calls, their children and the connections to storage all take some. */
const leastOpenFiles = 1024;
/** Parts of the whole. */
const littleSpace = 0.05;
const littleFiles = 0.02;

type Looks = Pick<Inspection, 'files' | 'stateDirectory' | 'configured' | 'mounts'>;

export async function checkLimits(inspection: Looks): Promise<readonly Finding[]> {
  const places = [
    { name: 'state directory', path: inspection.stateDirectory },
    // Of storage that may hang its own connection tells.
    ...inspection.configured.connections.flatMap(({ name, basePath }) =>
      basePath === undefined || mayHang(inspection.mounts.covering(basePath))
        ? []
        : [{ name: `base path of ${name}`, path: basePath }],
    ),
  ];
  return Promise.all([openFiles(inspection), ...places.map(({ name, path }) => space(inspection, name, path))]);
}

async function openFiles({ files }: Looks): Promise<Finding> {
  const text = (await files.read('/proc/self/limits')) ?? '';
  // The soft limit is raised to the hard one by the runtime.
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(text)?.[1] ?? 'unlimited';
  if (hard !== 'unlimited' && Number(hard) < leastOpenFiles) {
    return finding(
      'warning',
      'open files',
      `at most ${hard}`,
      `allow ${leastOpenFiles} or more (systemd: LimitNOFILE=)`,
    );
  }
  return finding('ok', 'open files', hard === 'unlimited' ? 'unlimited' : `at most ${hard}`);
}

async function space({ files }: Looks, name: string, path: string): Promise<Finding> {
  try {
    const at = await nearest(files, path);
    const found = await files.space(at);
    if (found === undefined) return finding('note', name, `${path}: not there`);
    const missing = at === path ? '' : ', not made yet';
    const detail = `${path}${missing}: ${formatSize(found.freeBytes)} of ${formatSize(found.bytes)} free`;
    if (found.bytes > 0 && found.freeBytes / found.bytes < littleSpace) {
      return finding('warning', name, detail, 'make room, or volumes and their records cannot be written');
    }
    if (found.files > 0 && found.freeFiles / found.files < littleFiles) {
      return finding(
        'warning',
        name,
        `${detail}, but only ${found.freeFiles} more files`,
        'remove files: its inodes run out',
      );
    }
    return finding('ok', name, detail);
  } catch (error) {
    return finding('warning', name, `${path}: ${whyOf(error)}`);
  }
}

/** The path, or where it will be made. On storage that may hang it is taken to be there. */
async function nearest(files: Looks['files'], path: string): Promise<string> {
  for (let at = path; at !== '/'; at = dirname(at)) {
    const there = await files.look(at).then(
      (facts) => facts !== undefined,
      () => true,
    );
    if (there) return at;
  }
  return '/';
}
