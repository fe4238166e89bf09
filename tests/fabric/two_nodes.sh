#!/bin/sh
# two_nodes.sh MPIEXEC COMMAND...: runs COMMAND as two ranks of one MPICH job on two nodes, which are namespaces of this
# machine: each has a network, a host name, shared memory and System V IPC of its own, and a virtual cable joins them.
# Needs root or user namespaces; where the system lets nobody make namespaces, says so and exits with 77.
set -eu
if [ -z "${GAPLESS_TEST_NODES:-}" ]; then
  user=
  [ "$(id -u)" -eq 0 ] || user=-r
  unshare $user -n -u -i -m true 2>/dev/null || { echo "two nodes: this system lets nobody make namespaces"; exit 77; }
  GAPLESS_TEST_NODES=$(mktemp -d)
  export GAPLESS_TEST_NODES
  trap 'rm -rf "$GAPLESS_TEST_NODES"' EXIT
  status=0
  unshare $user -n -m sh "$0" "$@" || status=$?
  exit "$status"
fi

PATH=$PATH:/usr/sbin:/sbin
mpiexec=$1
shift
shells=
trap 'kill $shells 2>/dev/null || true' EXIT
for node in 1 2; do
  # shellcheck disable=SC2016
  unshare -n -u -i -m sh -c 'mount -t tmpfs none /dev/shm && mount -t sysfs none /sys && hostname "node$2" &&
    echo "$$" >"$1/$2" && exec sleep 300' sh "$GAPLESS_TEST_NODES" "$node" &
  shells="$shells $!"
done
for node in 1 2; do
  tenths=100
  while [ ! -s "$GAPLESS_TEST_NODES/$node" ] && [ "$tenths" -gt 0 ]; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
done
first=$(cat "$GAPLESS_TEST_NODES/1")
second=$(cat "$GAPLESS_TEST_NODES/2")
ip link add eth0 netns "$first" type veth peer name eth0 netns "$second"
for node in 1 2; do
  process=$(cat "$GAPLESS_TEST_NODES/$node")
  nsenter -t "$process" -n sh -c "ip link set lo up && ip address add 10.77.0.$node/24 dev eth0 && ip link set eth0 up"
done
tenths=100
while [ "$(nsenter -t "$second" -n -m cat /sys/class/net/eth0/operstate)" != up ] && [ "$tenths" -gt 0 ]; do
  sleep 0.1
  tenths=$((tenths - 1))
done

# What the launcher takes for ssh.
cat >"$GAPLESS_TEST_NODES/ssh" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
process=$second
[ "\$1" = 10.77.0.2 ] || process=$first
shift
exec nsenter -t "\$process" -n -u -i -m sh -c "\$*"
END
chmod +x "$GAPLESS_TEST_NODES/ssh"
# UCX takes the loopback device for one that reaches the other node.
UCX_NET_DEVICES=eth0
export UCX_NET_DEVICES
nsenter -t "$first" -n -u -i -m "$mpiexec" -localhost 10.77.0.1 -hosts 10.77.0.1,10.77.0.2 -launcher ssh \
  -launcher-exec "$GAPLESS_TEST_NODES/ssh" -ppn 1 -n 2 "$@"
