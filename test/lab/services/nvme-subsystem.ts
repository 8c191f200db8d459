import type { Guest } from '../guest.ts';

export interface NvmeSubsystem {
  readonly nqn: string;
  /** Ports of the guest that lead to it, as {@link createNvmePort} numbered them. */
  readonly ports: readonly number[];
  /** Paths of block devices or files by NSID. */
  readonly namespaces: Readonly<Record<number, string>>;
}

const root = '/sys/kernel/config/nvmet';

/** Opens a TCP port for NVMe over Fabrics. */
export async function createNvmePort(guest: Guest, number: number, address: string, port: number): Promise<void> {
  const values = {
    addr_adrfam: address.includes(':') ? 'ipv6' : 'ipv4',
    addr_trtype: 'tcp',
    addr_traddr: address,
    addr_trsvcid: port,
  };
  await guest.run(`set -e
    modprobe nvmet-tcp
    mkdir ${root}/ports/${number}
    ${Object.entries(values)
      .map(([name, value]) => `echo ${value} >${root}/ports/${number}/${name}`)
      .join('\n')}`);
}

/** Makes a subsystem of the kernel's target (nvmet), open to every host. */
export async function createNvmeSubsystem(guest: Guest, { nqn, ports, namespaces }: NvmeSubsystem): Promise<void> {
  const subsystem = `${root}/subsystems/${nqn}`;
  const lines = [
    'set -e',
    'modprobe nvmet',
    `mkdir ${subsystem}`,
    `echo 1 >${subsystem}/attr_allow_any_host`,
    ...Object.entries(namespaces).flatMap(([nsid, path]) => namespaceLines(nqn, Number(nsid), path)),
    ...ports.map((port) => `ln -s ${subsystem} ${root}/ports/${port}/subsystems/`),
  ];
  await guest.run(lines.join('\n'));
}

function namespaceLines(nqn: string, nsid: number, path: string): string[] {
  const folder = `${root}/subsystems/${nqn}/namespaces/${nsid}`;
  return [`mkdir ${folder}`, `printf %s ${path} >${folder}/device_path`, `echo 1 >${folder}/enable`];
}

/** Hosts are told that the namespace has another size. */
export async function resizeNamespace(guest: Guest, nqn: string, nsid: number): Promise<void> {
  await guest.run(`echo 1 >${root}/subsystems/${nqn}/namespaces/${nsid}/revalidate_size`);
}

/** Takes it away from under whoever uses it. What backs it stays. */
export async function removeNvmeSubsystem(guest: Guest, { nqn }: Pick<NvmeSubsystem, 'nqn'>): Promise<void> {
  const subsystem = `${root}/subsystems/${nqn}`;
  await guest.run(`shopt -s nullglob
    for link in ${root}/ports/*/subsystems/${nqn}; do rm $link; done
    for one in ${subsystem}/namespaces/*; do echo 0 >$one/enable; rmdir $one; done
    rmdir ${subsystem}`);
}

/** Gives the guest its own host NQN and loads the initiator's side. */
export async function startNvmeHost(guest: Guest): Promise<void> {
  await guest.run(`set -e
    modprobe nvme-tcp
    mkdir -p /etc/nvme
    nvme gen-hostnqn >/etc/nvme/hostnqn
    cat /proc/sys/kernel/random/uuid >/etc/nvme/hostid`);
}
