#!/bin/bash
# Runs the test of raw verbs on soft-RoCE: a Debian kernel under QEMU, without KVM, that has an RDMA device in software.
#
#   tests/fabric/roce/run.sh [BUILD] [ARGUMENTS OF test_verbs …]
#
# BUILD is the build folder (build/default unless given), with bin/test_verbs in it. The Debian packages that are missing
# are installed, and the kernel is downloaded once into BUILD/roce. Takes a few minutes; exits with the test's status.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
build=$(cd "${1:-$root/build/default}" && pwd)
shift || true
test_program=$build/bin/test_verbs
[ -x "$test_program" ] || { echo "roce: no $test_program; build the target test_verbs" >&2; exit 2; }
work=$build/roce
mkdir -p "$work"

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
packages=()
for need in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio modprobe:kmod rdma:iproute2; do
  PATH=$PATH:/sbin:/usr/sbin command -v "${need%%:*}" >/dev/null || packages+=("${need#*:}")
done
dpkg -s ibverbs-providers >/dev/null 2>&1 || packages+=(ibverbs-providers)
if [ ${#packages[@]} -gt 0 ]; then
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
export PATH=$PATH:/sbin:/usr/sbin

# The kernel: the one package that Debian's own name for it depends on.
if [ ! -d "$work/kernel" ]; then
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')
  (cd "$work" && apt-get download -qq "$package")
  dpkg-deb -x "$work"/"$package"_*.deb "$work/unpacked"
  rm "$work"/"$package"_*.deb
  mv "$work/unpacked" "$work/kernel"
fi
release=$(ls "$work/kernel/lib/modules")
depmod -b "$work/kernel" "$release"

# The initial file system: busybox, the modules in the order to load them, and what to do.
initial=$work/initial
rm -rf "$initial"
mkdir -p "$initial"/{bin,modules,proc,sys,dev,host,upper,root}
cp "$(command -v busybox)" "$initial/bin/busybox"
for module in virtio_pci 9pnet_virtio 9p overlay crc32_generic dummy rdma_rxe ib_uverbs; do
  modprobe -d "$work/kernel" -S "$release" --show-depends "$module" | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' | while read -r file; do
  cp "$file" "$initial/modules/"
  basename "$file"
done >"$initial/modules/order"

quoted=$(printf ' %q' "$test_program" "$@")
cat >"$initial/init" <<END
#!/bin/busybox sh
b=/bin/busybox
\$b mount -t proc none /proc
\$b mount -t sysfs none /sys
\$b mount -t devtmpfs none /dev
for module in \$(\$b cat /modules/order); do \$b insmod /modules/\$module; done
\$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
\$b mount -t tmpfs none /upper
\$b mkdir /upper/changes /upper/work
\$b mount -t overlay -o lowerdir=/host,upperdir=/upper/changes,workdir=/upper/work none /root
for folder in proc sys dev; do \$b mount -o bind /\$folder /root/\$folder; done
\$b chroot /root /bin/sh -c '
  export PATH=/usr/sbin:/usr/bin:/sbin:/bin GAPLESS_TEST_LIMIT_S=240 ${GAPLESS_TEST_SEED:+GAPLESS_TEST_SEED=$GAPLESS_TEST_SEED}
  ulimit -l unlimited
  ip link set lo up
  ip link add roce0 type dummy
  ip address add 192.168.77.1/24 dev roce0
  ip link set roce0 up
  rdma link add rxe0 type rxe netdev roce0
  rdma link show
  cd /
 $quoted
  echo "soft-RoCE: exit status \$?"'
\$b poweroff -f
END
chmod +x "$initial/init"
(cd "$initial" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initial.gz"

timeout 900 qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 1024 -nographic -no-reboot -nodefaults -serial stdio \
  -kernel "$work/kernel/boot/vmlinuz-$release" -initrd "$work/initial.gz" -append "console=ttyS0 quiet panic=-1" \
  -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" </dev/null | tee "$work/log"
status=$(tr -d '\r' <"$work/log" | sed -n 's/^soft-RoCE: exit status //p')
exit "${status:-1}"
