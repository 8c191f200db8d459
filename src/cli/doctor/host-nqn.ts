import { ownUuid } from '../../node/attachers/nvmeof/own-uuid.ts';
import { whyOf } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import { imageAge } from './image-age.ts';
import { type HostFile, type Inspection, readHostFile } from './inspection.ts';

const finding = about('identity');

const paths = { nqn: '/etc/nvme/hostnqn', id: '/etc/nvme/hostid', product: '/sys/class/dmi/id/product_uuid' } as const;

const renew = `write the output of "nvme gen-hostnqn" into ${paths.nqn} of this host, and its uuid into ${paths.id}`;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** `needed`: something that is configured has to know it. */
export async function checkHostNqn(
  inspection: Pick<Inspection, 'files' | 'hostRoot'>,
  needed: boolean,
): Promise<readonly Finding[]> {
  const [nqn, id] = await Promise.all([readHostFile(inspection, paths.nqn), readHostFile(inspection, paths.id)]);
  const product = await inspection.files.read(paths.product).catch(whyOf);
  const found = [await judgeNqn(inspection, nqn, needed, ownUuid(product ?? ''))];
  if (nqn !== undefined || id !== undefined) found.push(judgeId(nqn, id, needed));
  const common = product !== undefined && uuid.test(product.trim()) && ownUuid(product) === undefined;
  if (common && nqn?.text.toLowerCase().includes(product.trim().toLowerCase())) {
    const detail = `the host NQN is made of the product uuid ${product.trim()}, which many boards have`;
    found.push(finding('warning', 'product uuid', detail, renew));
  }
  return found;
}

async function judgeNqn(
  inspection: Pick<Inspection, 'files'>,
  file: HostFile | undefined,
  needed: boolean,
  ofMachine: string | undefined,
): Promise<Finding> {
  const name = 'NVMe host NQN';
  const bad = needed ? 'error' : 'warning';
  if (file === undefined) {
    if (!needed) return finding('note', name, `no ${paths.nqn}; for NVMe-oF disks`);
    if (ofMachine !== undefined)
      return finding('ok', name, `no ${paths.nqn}; it is made of the machine’s ${ofMachine}`);
    return finding('error', name, `there is no ${paths.nqn}`, renew);
  }
  const nqn = file.text.trim();
  if (!isNqn(nqn)) return finding(bad, name, `${file.path}: "${nqn.slice(0, 80)}" is not an NQN`, renew);
  if (file.hides) {
    const detail = `${nqn} is of this container’s image, and every container of that image has it; the host has another in ${file.hides.path}`;
    return finding('warning', name, detail, 'mount the host’s /etc/nvme at /etc/nvme, or leave it out of the image');
  }
  const own = nqnUuid(nqn);
  if (own !== undefined && ownUuid(own) === undefined) {
    return finding('warning', name, `${nqn} is made of a uuid that many machines have`, renew);
  }
  const age = await imageAge(inspection, file);
  return age === undefined ? finding('ok', name, nqn) : finding('warning', name, `${nqn} ${age}`, renew);
}

function judgeId(nqn: HostFile | undefined, id: HostFile | undefined, needed: boolean): Finding {
  const name = 'NVMe host id';
  const bad = needed ? 'error' : 'warning';
  if (id === undefined) return finding('note', name, `no ${paths.id}: nvme makes it from the host NQN`);
  const text = id.text.trim();
  if (!uuid.test(text)) return finding(bad, name, `${id.path}: "${text.slice(0, 80)}" is not a uuid`, renew);
  const own = nqn && nqnUuid(nqn.text.trim());
  if (own !== undefined && own.toLowerCase() !== text.toLowerCase()) {
    const detail = `${text} is not the uuid of the host NQN: kernels refuse one NQN with two ids`;
    return finding('warning', name, detail, `write ${own} into ${id.path}, while nothing is connected`);
  }
  return finding('ok', name, text);
}

/** NVM Express Base Specification, 4.7 (NVMe Qualified Names). */
function isNqn(text: string): boolean {
  if (Buffer.byteLength(text) > 223) return false;
  if (text.startsWith('nqn.2014-08.org.nvmexpress:uuid:')) return nqnUuid(text) !== undefined;
  return /^nqn\.\d{4}-(0[1-9]|1[0-2])\.[A-Za-z0-9][A-Za-z0-9.-]*:\S+$/.test(text);
}

function nqnUuid(nqn: string): string | undefined {
  const found = /^nqn\.2014-08\.org\.nvmexpress:uuid:(.+)$/.exec(nqn)?.[1];
  return found !== undefined && uuid.test(found) ? found : undefined;
}
