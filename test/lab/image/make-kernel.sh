#!/bin/bash
# make-kernel.sh TARGET: builds the guests' kernel and ZFS from Debian's source packages, in a root directory of its own with Debian's
# compiler. Puts into the folder TARGET, beside the build's log:
#   linux             the kernel, a program of x86-64
#   modules.tar.zst   its modules, ZFS among them
# By root on Debian. About a quarter of an hour on two processors, and 6 GB while it works.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$1
release=trixie
# The first that the mirror has. From 6.16 on, guests run several times faster.
sources='linux-source-7.2 linux-source-6.12'
tools=gcc,libc6-dev,make,flex,bison,bc,perl,python3,kmod,libelf-dev,libssl-dev,rsync,cpio,gawk,file,xz-utils,zstd,procps

command -v mmdebstrap >/dev/null || {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends mmdebstrap debian-archive-keyring >/dev/null
}
mirror=$("$here/debian-mirror.sh")
mkdir -p "$target"
root=$target/root
rm -rf "$root"
# Unpacked rather than installed: installing zfs-dkms would build it for the host's kernel.
fetch="cd /usr/src && for source in $sources; do apt-get download \$source && break; done
  apt-get download zfs-dkms && for package in *.deb; do dpkg -x \$package / && rm \$package; done"
mmdebstrap --quiet --variant=minbase --mode=root --aptopt='APT::Install-Recommends "false"' \
  --include="$tools" --customize-hook="chroot \"\$1\" bash -euc '$fetch'" "$release" "$root" \
  "deb $mirror $release main contrib" "deb $mirror $release-backports main" >&2
install -m 644 "$here/kernel.config" "$root/kernel.config"

cat >"$root/build.sh" <<'BUILD'
set -euo pipefail
export ARCH=um LANG=C.UTF-8
cd /usr/src
tar -xf linux-source-*.tar.xz
kernel=$(echo /usr/src/linux-source-*/)
kernel=${kernel%/}
cd "$kernel"
cp /kernel.config .config
make olddefconfig
make -j"$(nproc)" linux modules
release=$(make -s kernelrelease)
make INSTALL_MOD_PATH=/out INSTALL_MOD_STRIP=1 DEPMOD=true modules_install
cd /usr/src/zfs-*
./configure --with-config=kernel --with-linux="$kernel" --with-linux-obj="$kernel"
make -j"$(nproc)"
mkdir -p "/out/lib/modules/$release/extra"
find . -name '*.ko' -exec install -m 644 -t "/out/lib/modules/$release/extra" {} +
strip --strip-debug "/out/lib/modules/$release"/extra/*.ko
rm -f "/out/lib/modules/$release"/{build,source}
strip -o /out/linux "$kernel/linux"
BUILD
unshare --mount --pid --fork --kill-child sh -ec 'mount -t proc proc "$1/proc"; exec chroot "$1" bash /build.sh' build "$root" \
  >"$target/build.log" 2>&1 || {
  tail -n 40 "$target/build.log" >&2
  exit 1
}
install -m 755 "$root/out/linux" "$target/linux"
# Last: where it is, everything is.
tar --zstd -cf "$target/modules.new" -C "$root/out/lib/modules" .
rm -rf "$root"
mv "$target/modules.new" "$target/modules.tar.zst"
