# What scenarios on the machine network use beside initiator.bash: tgtd in this guest, a
# bottleneck and readers, each in a network namespace of its own.
#
#     tgtd 10.9.1.1 (t0) - (t1) router (c0) - (c1) readers 10.9.2.2
#
# The router sends at most $rate Mbit/s to the readers and marks what comes while its queue is
# longer than 4 ms (RED), or drops it where nobody answers marks; acknowledgements take DELAY. Three
# eighths of that are what the delay form lets wait. An emulated machine does not carry 200
# Mbit/s, and its timers are late by milliseconds: a slower router marks from 20 ms on, and what it
# may send of 10 ms is not lost to a late timer. Below 15 Mbit/s low has more than its share: a
# window always lets 256 KiB a second through.
rate=${rate:-200}
readonly DELAY=30ms MTU=1500
mark=$((rate < 200 ? rate * 2500 : rate * 500))
PORTAL=10.9.1.1:3260
. /lab/tgtd.bash

network_up() {
	must modprobe -a veth tcp_dctcp sch_htb sch_red sch_netem
	must ip netns add router
	must ip netns add readers
	must ip link add t0 mtu $MTU type veth peer name t1 mtu $MTU netns router
	must ip -n router link add c0 mtu $MTU type veth peer name c1 mtu $MTU netns readers
	must ip link set t0 gso_max_segs 1
	must ip address add 10.9.1.1/24 dev t0
	must ip -n router address add 10.9.1.2/24 dev t1
	must ip -n router address add 10.9.2.1/24 dev c0
	must ip -n readers address add 10.9.2.2/24 dev c1
	for link in "router t1" "router c0" "readers c1" "readers lo"; do
		# shellcheck disable=SC2086
		must ip -n ${link% *} link set ${link#* } up
	done
	must ip link set t0 up
	must ip route add 10.9.2.0/24 via 10.9.1.2
	must ip -n readers route add default via 10.9.2.1
	must ip netns exec router sysctl -q -w net.ipv4.ip_forward=1
	must sysctl -q -w net.ipv4.tcp_ecn=1 net.core.wmem_max=4194304 "net.ipv4.tcp_allowed_congestion_control=reno cubic dctcp"
	must ip netns exec router tc qdisc add dev t1 root netem delay $DELAY limit 10000
	must ip netns exec router tc qdisc add dev c0 root handle 1: htb default 1
	must ip netns exec router tc class add dev c0 parent 1: classid 1:1 htb rate "${rate}mbit" burst $((rate * 1250)) cburst $((rate * 1250))
	must ip netns exec router tc qdisc add dev c0 parent 1:1 handle 2: red limit 1000000 \
		min $mark max $((mark + 3000)) avpkt $MTU burst $((mark / MTU + 1)) bandwidth "${rate}mbit" probability 1 ecn
	echo "bottleneck Of $rate Mbit/s, which marks from $((mark * 8 / rate / 1000)) ms on, and 30 ms away; Linux $(uname -r), emulated."
}

network_down() {
	must ip link delete t0
	must ip netns delete router
	must ip netns delete readers
}

# receivers_are dctcp, cubic-ecn or no-ecn: what the readers' kernel does.
receivers_are() {
	local control=cubic ecn=1
	case $1 in dctcp) control=dctcp ;; no-ecn) ecn=0 ;; esac
	must ip netns exec readers sysctl -q -w "net.ipv4.tcp_congestion_control=$control" "net.ipv4.tcp_ecn=$ecn"
}

# server_is plain, governor or kernel: starts tgtd whose classes are governed by nobody, by
# itself, or by the kernel's lunar_qtcp.
server_is() {
	local change=''
	case $1 in
	governor) change='s/governor: false/governor: true/' ;;
	kernel)
		change='s/governor: false/governor: kernel/'
		[ -e /sys/fs/bpf/lunar ] || must /lab/tgtd qtcp load
		;;
	esac
	sed -e "$change" -e "s/delay: 5ms/delay: $((mark * 3 / rate / 1000))ms/" -e "s/24414KiB/$((rate * 122))KiB/" /lab/conf/network-classes.yaml >/tmp/tgtd.yaml
	tgtd_start
}

# readers BY RECEIVERS: one reader of each class at a time, and what they got.
readers() {
	local class rates='' loads=()
	for class in high medium low; do
		ip netns exec readers /lab/tgtload --target iscsi://10.9.1.1/iqn.2026-01.lunar.lab:disk/0 --rw randread --bs 64k --depth 16 \
			--initiator "iqn.2026-01.lunar.lab:$class" --warmup 4s --runtime "${seconds}s" --json >"/tmp/$class.json" 2>&1 3>&- &
		loads+=($!)
	done
	sleep $((4 + seconds / 3))
	for class in high low; do
		/lab/lunar qos explain "iqn.2026-01.lunar.lab:$class" >/tmp/explained
		echo "explained $1 $2 $(awk '/^CONNECTION / { getline; print; exit }' /tmp/explained)"
	done
	for class in "${loads[@]}"; do wait "$class" || fail "a reader ended: $(cat /tmp/{high,medium,low}.json)"; done
	for class in high medium low; do
		rates+=" $(sed -n 's/.*"bytes_per_second": *\([0-9.e+]*\).*/\1/p' "/tmp/$class.json" | awk '{ printf "%.1f", $1 * 8 / 1e6 }')"
	done
	ip netns exec router tc -s qdisc show dev c0 | tr '\n' ' ' | sed 's/.*red /queue red /'
	echo
	echo "sample $1 $2$rates"
}
