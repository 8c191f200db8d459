#!/bin/bash
# Process 1 of a guest: what every test expects to run. Servers of storage are started by the tests.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -o remount,rw /
# User Mode Linux mends no page tables of io_uring when a process forks: the kernel would panic as soon as Node.js starts a program.
echo 2 >/proc/sys/kernel/io_uring_disabled
mkdir -p /run/lock /run/sshd /run/dbus /run/samba /run/rpc_pipefs

# Its name, address and folder of the host come on the command line of the kernel: guest.name=web guest.address=10.0.2.15
for word in $(</proc/cmdline); do
  case $word in guest.*=*)
    word=${word#guest.}
    declare "guest_${word%%=*}=${word#*=}"
    ;;
  esac
done
hostname "$guest_name"
printf '127.0.0.1 localhost\n::1 localhost\n%s %s\n' "$guest_address" "$guest_name" >/etc/hosts

/usr/lib/systemd/systemd-udevd --daemon
udevadm trigger --type=subsystems --action=add
udevadm trigger --type=devices --action=add
modprobe configfs
mount -t configfs configfs /sys/kernel/config

ip link set lo up
for _ in {1..100}; do
  card=$(ls /sys/class/net | grep -v -e '^lo$' -e '^sit' -e '^ip6' -e '^tun' -e '^erspan' -e '^gre' | head -n 1)
  [ -n "$card" ] && break
  sleep 0.1
done
ip link set "$card" up
ip address add "$guest_address/24" dev "$card"
ip -6 address add "fd00::${guest_address##*.}/64" dev "$card" nodad
ip route add default via 10.0.2.2

if [ -n "${guest_folder:-}" ]; then
  mkdir -p /host
  mount -t hostfs -o "hostfs=$guest_folder" hostfs /host
fi
dbus-daemon --system --fork
/usr/sbin/sshd -E /run/sshd.log
echo "the guest is up" >/dev/console
while :; do
  sleep 3600 &
  wait $!
done
