import type { Guest } from '../guest.ts';

export interface SmbAccount {
  readonly user: string;
  readonly password: string;
}

/** Starts Samba with shares by name, each a folder that this account, which is made, may write. `more`: global settings. */
export async function startSmbServer(
  guest: Guest,
  shares: Readonly<Record<string, string>>,
  { user, password }: SmbAccount,
  more: readonly string[] = [],
): Promise<void> {
  const global = [
    '[global]',
    'server role = standalone server',
    'map to guest = never',
    'server min protocol = SMB2',
    'disable netbios = yes',
    'load printers = no',
    'printing = bsd',
    'smb ports = 445',
    ...more,
  ];
  const sections = Object.entries(shares).map(([name, folder]) =>
    [`[${name}]`, `path = ${folder}`, 'read only = no', `valid users = ${user}`, 'force user = root'].join('\n'),
  );
  await guest.run('cat >/etc/samba/smb.conf', { input: `${[...global, ...sections].join('\n')}\n` });
  await guest.run(
    `set -e
    mkdir -p /run/samba /var/lib/samba/private /var/log/samba ${Object.values(shares).join(' ')}
    id ${user} >/dev/null 2>&1 || useradd --no-create-home ${user}
    smbpasswd -s -a ${user} >/dev/null
    smbd -D
    for _ in {1..200}; do (exec 3<>/dev/tcp/127.0.0.1/445) 2>/dev/null && exit; sleep 0.05; done
    exit 1`,
    { input: `${password}\n${password}\n` },
  );
}
