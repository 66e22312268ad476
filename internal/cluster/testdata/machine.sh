#!/bin/sh
# Boots systemd as on a machine of its own: with this machine's files, to which it writes a copy, and without its
# network. Run as root, as the first process of new namespaces:
#
#   unshare --mount --pid --fork --kill-child --uts --ipc --net sh machine.sh DIRECTORY GROUP PROGRAM...
#
# DIRECTORY is empty, GROUP the name of a control group, and the PROGRAMs are put into /usr/local/bin there. All that the
# machine writes stays in memory, but for /root and /var/lib/regedge, which are in the folder DISK.
set -eu

if [ "$1" != booting ]; then
    dir=$1 group=$2
    mount --make-rprivate /
    mount -t tmpfs tmpfs "$dir"
    mkdir "$dir/written" "$dir/work" "$dir/root" "$dir/groups"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/written,workdir=$dir/work" "$dir/root"
    shift 2
    for program in "$@"; do
        install -m 755 "$program" "$dir/root/usr/local/bin/"
    done
    : > "$dir/root/machine" # tells its root from this machine's
    for kept in root var/lib/regedge; do
        mkdir -p "$DISK/$kept" "$dir/root/$kept"
        mount --bind "$DISK/$kept" "$dir/root/$kept"
    done
    ip link set lo up
    # A control group of its own, which becomes the root of those that systemd makes.
    mount -t cgroup2 cgroup2 "$dir/groups"
    mkdir "$dir/groups/$group"
    echo 0 > "$dir/groups/$group/cgroup.procs"
    umount "$dir/groups"
    exec unshare --cgroup sh "$0" booting "$dir/root"
fi

cd "$2"
mount -t proc proc proc
# Of the kernel's settings only those of its network are its own.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --bind proc/sys/net proc/sys/net
mount -o remount,bind,rw proc/sys/net
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
: > etc/fstab
mkdir -p before
pivot_root . before
umount -l /before
mount --make-rshared / # or no service gets its credentials
export container=machine
exec /lib/systemd/systemd --system --unit=basic.target --log-target=journal
