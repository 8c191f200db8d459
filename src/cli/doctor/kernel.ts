/** What the kernel can mount and attach. */
import { release } from 'node:os';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';
import { connectionsText, needsOf, whoNeeds } from './needs.ts';
import type { Need } from './program-table.ts';

const finding = about('kernel');

interface Part {
  readonly name: string;
  readonly module: string;
  readonly use: string;
  readonly neededBy: readonly Need[];
}

const fileSystems: readonly Part[] = [
  { name: 'ext4', module: 'ext4', use: 'disks, by default', neededBy: ['disks'] },
  { name: 'xfs', module: 'xfs', use: 'disks', neededBy: [] },
  { name: 'btrfs', module: 'btrfs', use: 'disks', neededBy: [] },
  { name: 'nfs', module: 'nfs', use: 'NFS volumes', neededBy: ['nfs'] },
  { name: 'nfs4', module: 'nfsv4', use: 'NFS volumes', neededBy: [] },
  { name: 'cifs', module: 'cifs', use: 'SMB volumes', neededBy: ['smb'] },
  { name: 'lustre', module: 'lustre', use: 'Lustre volumes', neededBy: ['lustre'] },
  { name: 'fuse', module: 'fuse', use: 'ObjectiveFS and Onedata volumes', neededBy: ['objectivefs', 'oneclient'] },
  { name: 'zfs', module: 'zfs', use: 'local ZFS volumes', neededBy: ['zfs'] },
];

const modules: readonly Part[] = [
  { name: 'iscsi_tcp', module: 'iscsi_tcp', use: 'iSCSI disks', neededBy: ['iscsi'] },
  { name: 'nvme_tcp', module: 'nvme_tcp', use: 'NVMe-oF disks over TCP', neededBy: ['nvmeof'] },
  { name: 'dm_multipath', module: 'dm_multipath', use: 'disks with several paths', neededBy: [] },
  { name: 'loop', module: 'loop', use: 'images as disks', neededBy: [] },
];

type Looks = Pick<Inspection, 'files' | 'hostRoot' | 'configured' | 'modes' | 'mounts'>;

/** `kernel`: its release, as uname(2) has it. */
export async function checkKernel(inspection: Looks, kernel: string = release()): Promise<readonly Finding[]> {
  const { files, configured, modes, mounts } = inspection;
  const needs = needsOf(configured.connections, modes, mounts);
  const registered = new Set((await files.read('/proc/filesystems'))?.match(/\w+$/gm) ?? []);
  const loadable = await loadableModules(inspection, kernel);
  const judge = ({ name, module, use, neededBy }: Part, isThere: boolean): Finding => {
    if (isThere) return finding('ok', name, `there; for ${use}`);
    if (loadable?.has(module)) return finding('ok', name, `a module that is loaded when it is needed; for ${use}`);
    const users = whoNeeds(needs, neededBy);
    if (loadable === undefined) {
      if (users.length === 0) return finding('note', name, `not loaded; for ${use}`);
      const detail = `not loaded; ${connectionsText(users)} cannot do without it`;
      return finding('warning', name, detail, `see to it that the host can load it: modprobe ${module}`);
    }
    if (users.length === 0) return finding('note', name, `not in this kernel; for ${use}`);
    const detail = `not in this kernel; ${connectionsText(users)} cannot do without it`;
    return finding(
      'error',
      name,
      detail,
      `install the module ${module} for kernel ${kernel} (modprobe ${module} must work)`,
    );
  };
  return [
    ...fileSystems.map((part) => judge(part, registered.has(part.name))),
    ...(await Promise.all(
      modules.map(async (part) => judge(part, (await files.look(`/sys/module/${part.module}`)) !== undefined)),
    )),
    await nativeMultipath(inspection),
    ...(loadable === undefined
      ? [finding('note', 'modules', `/lib/modules/${kernel} is not seen here: which modules there are cannot be told`)]
      : []),
  ];
}

/** Undefined when the host's modules are not to be seen. Names have underscores, where file names may have dashes. */
async function loadableModules({ files, hostRoot }: Looks, kernel: string): Promise<ReadonlySet<string> | undefined> {
  const folders = ['', '/usr', hostRoot, `${hostRoot}/usr`].map((root) => `${root}/lib/modules/${kernel}`);
  for (const folder of folders) {
    const texts = await Promise.all(['modules.dep', 'modules.builtin'].map((name) => files.read(`${folder}/${name}`)));
    if (texts[0] === undefined) continue;
    const names = texts.join('\n').matchAll(/^[^\s:]*?([^/\s:]+)\.ko\b/gm);
    return new Set([...names].map(([, name = '']) => name.replaceAll('-', '_')));
  }
  return undefined;
}

async function nativeMultipath({ files }: Looks): Promise<Finding> {
  const name = 'NVMe multipath';
  const value = (await files.read('/sys/module/nvme_core/parameters/multipath'))?.trim();
  if (value === undefined) return finding('note', name, 'cannot be told before nvme_core is loaded');
  if (/^[Y1]$/.test(value)) return finding('ok', name, 'native: the kernel joins the paths of a disk');
  return finding(
    'note',
    name,
    'native multipath is off, so disks with several paths need multipathd',
    'nvme_core.multipath=Y on the kernel’s command line, unless that is wanted',
  );
}
