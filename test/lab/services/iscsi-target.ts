import type { Guest } from '../guest.ts';

export interface IscsiTarget {
  readonly iqn: string;
  /** `address:port`, IPv6 in brackets. */
  readonly portals: readonly string[];
  /** Paths of block devices or files by LUN. */
  readonly luns: Readonly<Record<number, string>>;
  /** What initiators must know, and what the target proves to know to them. */
  readonly chap?: { readonly user: string; readonly password: string } | undefined;
  readonly mutualChap?: { readonly user: string; readonly password: string } | undefined;
}

const root = '/sys/kernel/config/target';

/** Makes a target of the kernel (LIO), open to every initiator that knows the secrets, if there are any. */
export async function createIscsiTarget(guest: Guest, target: IscsiTarget): Promise<void> {
  const { iqn, portals, luns, chap, mutualChap } = target;
  const group = `${root}/iscsi/${iqn}/tpgt_1`;
  const lines = [
    'set -e; shopt -s nullglob',
    'modprobe iscsi_target_mod; modprobe target_core_iblock; modprobe target_core_file',
    'mkdir -p /var/target/pr /var/target/alua',
    `mkdir -p ${group}`,
    ...Object.entries({
      authentication: chap ? 1 : 0,
      generate_node_acls: 1,
      demo_mode_write_protect: 0,
      cache_dynamic_acls: 1,
    }).map(([name, value]) => `echo ${value} >${group}/attrib/${name}`),
    ...(chap ? auth(group, { userid: chap.user, password: chap.password }) : []),
    ...(mutualChap ? auth(group, { userid_mutual: mutualChap.user, password_mutual: mutualChap.password }) : []),
    ...portals.map((portal) => `mkdir '${group}/np/${portal}'`),
    ...Object.entries(luns).flatMap(([lun, path]) => lunLines(iqn, Number(lun), path)),
    `echo 1 >${group}/enable`,
  ];
  await guest.run(lines.join('\n'));
}

export async function addLun(guest: Guest, iqn: string, lun: number, path: string): Promise<void> {
  await guest.run(['set -e', ...lunLines(iqn, lun, path)].join('\n'));
}

const auth = (group: string, values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([name, value]) => `printf %s '${value}' >${group}/auth/${name}`);

/** One host bus adapter of the target core for each device, so that they come and go by themselves. */
function lunLines(iqn: string, lun: number, path: string): string[] {
  const name = storeName(iqn, lun);
  const kind = path.startsWith('/dev/') ? 'iblock' : 'fileio';
  const store = `${root}/core/${kind}_${storeNumber(name)}/${name}`;
  const control =
    kind === 'iblock'
      ? `echo udev_path=${path} >${store}/control`
      : `echo "fd_dev_name=${path},fd_dev_size=$(stat -c %s ${path})" >${store}/control`;
  return [
    `mkdir -p ${store}`,
    control,
    `echo 1 >${store}/enable`,
    // The default is random for each, but some kernels leave it empty.
    `cat /proc/sys/kernel/random/uuid >${store}/wwn/vpd_unit_serial`,
    `mkdir ${root}/iscsi/${iqn}/tpgt_1/lun/lun_${lun}`,
    `ln -s ${store} ${root}/iscsi/${iqn}/tpgt_1/lun/lun_${lun}/${name}`,
  ];
}

const storeName = (iqn: string, lun: number) => `${iqn.split(':').at(-1)}-${lun}`;

/** Adapters are told apart by number alone. */
const numbers = new Map<string, number>();
const storeNumber = (name: string): number => {
  const number = numbers.get(name) ?? numbers.size + 1;
  numbers.set(name, number);
  return number;
};

/** Takes it away from under whoever uses it. What backs it stays. */
export async function removeIscsiTarget(guest: Guest, { iqn, luns }: Pick<IscsiTarget, 'iqn' | 'luns'>): Promise<void> {
  const group = `${root}/iscsi/${iqn}/tpgt_1`;
  const stores = Object.keys(luns).map((lun) => `${root}/core/*/${storeName(iqn, Number(lun))}`);
  await guest.run(`shopt -s nullglob
    echo 0 >${group}/enable
    for lun in ${group}/lun/lun_*; do for link in $lun/*; do test ! -L $link || rm $link; done; rmdir $lun; done
    rmdir ${group}/np/* ${group} ${root}/iscsi/${iqn} || exit
    for store in ${stores.join(' ')}; do rmdir $store $(dirname $store); done`);
}

/** Gives the guest its own initiator name and starts the initiator's daemon. */
export async function startInitiator(guest: Guest): Promise<void> {
  await guest.run(`set -e
    modprobe iscsi_tcp
    echo InitiatorName=iqn.2026-01.org.lab.initiator:${guest.name} >/etc/iscsi/initiatorname.iscsi
    iscsid
    modprobe -q dm-multipath || true`);
}
