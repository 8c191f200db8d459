#!/bin/bash
# make-image.sh KERNEL-FOLDER TARGET: what guests boot from, made in the folder TARGET by root on Debian.
#   root.img   Debian's user land with every storage tool, and the kernel's modules
#   kernel/    a root directory for the kernel, which is a program: it wants a newer libc than the host may have
#   key        the private key that root of every guest is reached with
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1
target=$2
release=trixie

base=udev,dbus,iproute2,iputils-ping,kmod,procps,ca-certificates,openssh-server,acl,attr,rsync,strace,nftables,psmisc
storage=zfsutils-linux,lvm2,multipath-tools,lsscsi,fdisk,parted,quota
files=e2fsprogs,xfsprogs,btrfs-progs,dosfstools,exfatprogs,ntfs-3g
network=nfs-kernel-server,nfs-common,rpcbind,samba,cifs-utils,targetcli-fb,python3-configshell-fb,open-iscsi,nvme-cli
other=restic,sudo

for program in mmdebstrap:mmdebstrap zstd:zstd mke2fs:e2fsprogs ssh-keygen:openssh-client; do
  command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
done
if [ -n "${missing:-}" ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" debian-archive-keyring >/dev/null
fi

mirror=$("$here/debian-mirror.sh")
rm -rf "$target"
mkdir -p "$target"
root=$target/root
mmdebstrap --quiet --variant=minbase --mode=root --components=main,contrib \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --include="$base,$storage,$files,$network,$other" "$release" "$root" "$mirror" >&2

mkdir -p "$root/usr/lib/modules"
tar --zstd -xf "$kernel/modules.tar.zst" -C "$root/usr/lib/modules"
for modules in "$root"/usr/lib/modules/*; do chroot "$root" depmod "${modules##*/}"; done
install -m 755 "$here/init.sh" "$root/lab-init"

ssh-keygen -q -t ed25519 -N '' -C lab -f "$target/key"
install -d -m 700 "$root/root/.ssh"
install -m 600 "$target/key.pub" "$root/root/.ssh/authorized_keys"
chroot "$root" ssh-keygen -A >/dev/null
cat >"$root/etc/ssh/sshd_config.d/lab.conf" <<'CONF'
UseDNS no
UsePAM no
PermitRootLogin prohibit-password
MaxSessions 200
MaxStartups 200
CONF
# sshd without PAM refuses accounts that are locked.
chroot "$root" usermod -p '*' root
echo '/dev/root / ext4 noatime 0 0' >"$root/etc/fstab"
# Every guest has the same image, and none may have another one's name.
rm -f "$root/etc/iscsi/initiatorname.iscsi" "$root/etc/nvme/hostnqn" "$root/etc/nvme/hostid"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*

truncate -s 3G "$target/root.img"
mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1,nodiscard -d "$root" "$target/root.img"

own=$target/kernel
mkdir -p "$own"/{lib64,lib/x86_64-linux-gnu,proc,dev,sys,tmp,image,run,folder}
cp -L "$root/lib64/ld-linux-x86-64.so.2" "$own/lib64/"
cp -L "$root/lib/x86_64-linux-gnu/libc.so.6" "$own/lib/x86_64-linux-gnu/"
install -m 755 "$kernel/linux" "$own/linux"
rm -rf "$root"
