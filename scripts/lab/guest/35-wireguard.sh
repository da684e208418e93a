# machines: numa2
# seconds: 360
# iSCSI through WireGuard, as docs/security.md describes it: tgtd in a network
# namespace of its own, which a cable of two ends stands between. Its portal is at the
# address of the tunnel alone; data go through the tunnel; who has another key, or no
# tunnel, does not reach the portal.
. /lab/numa.bash

must modprobe wireguard
umask 077
for side in store host stranger; do wg genkey | tee "/tmp/$side.key" | wg pubkey >"/tmp/$side.pub"; done
umask 022

must ip netns add store
must ip link add cable type veth peer name cable netns store
must ip address add 192.0.2.1/24 dev cable
must ip link set cable up
must ip -n store address add 192.0.2.2/24 dev cable
must ip -n store link set cable up
must ip -n store link set lo up

# On the machine of tgtd.
must ip -n store link add wg0 type wireguard
must ip netns exec store wg set wg0 listen-port 51820 private-key /tmp/store.key \
	peer "$(cat /tmp/host.pub)" allowed-ips 10.9.0.2/32
must ip -n store address add 10.9.0.1/24 dev wg0
must ip -n store link set wg0 mtu 1420 up

# On the initiator's.
must ip link add wg0 type wireguard
must wg set wg0 private-key /tmp/host.key \
	peer "$(cat /tmp/store.pub)" endpoint 192.0.2.2:51820 allowed-ips 10.9.0.1/32
must ip address add 10.9.0.2/24 dev wg0
must ip link set wg0 mtu 1420 up

cat >/tmp/tgtd.yaml <<'YAML'
portal-groups:
  tunnel: {listen: ["10.9.0.1:3260"]}
volumes:
  disk: {type: file, path: disk, size: 64MiB}
targets:
  iqn.2026-01.lunar.lab:disk: {luns: {0: disk}}
YAML
ip netns exec store /lab/tgtd serve -c /tmp/tgtd.yaml >>/tmp/tgtd.log 2>&1 3>&- &
tgtd_pid=$!
PORTAL=10.9.0.1:3260
reaches() { timeout 5 bash -c "exec 3<>/dev/tcp/$1/3260" 2>/dev/null && echo yes || echo no; }
eventually yes reaches 10.9.0.1
equal "$(reaches 192.0.2.2)" no

attach disk "$PORTAL"
verified "$(disk disk 0)" --bs=64k --size=16M
sent=$(wg show wg0 transfer | awk '{ print $3 }')
((sent > 16 << 20)) || fail "found $sent bytes sent through the tunnel, expected more than were written"
no_io_errors
logout disk

# Somebody with another key, at the same addresses.
must wg set wg0 private-key /tmp/stranger.key
equal "$(reaches 10.9.0.1)" no
must wg set wg0 private-key /tmp/host.key
eventually yes reaches 10.9.0.1
tgtd_stop
