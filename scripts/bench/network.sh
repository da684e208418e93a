#!/usr/bin/env bash
# network.sh [ROUNDS [SECONDS]]: three classes of readers behind a bottleneck of 200 Mbit/s
# between network namespaces of this machine, in turns with plain TCP, with tgtd's governor
# and with the kernel's lunar_qtcp. It prints docs/reports/network-classes.md. Needs root.
#
# RECEIVERS are no-ecn (the default), so that the delay form governs, or ecn: they answer marks as
# RFC 3168 has it. What marks is marks.bpf.c, which clang compiles. With SAMPLES, a file, the page
# is of the rounds of earlier calls, too, which are there. With GUEST, the log of the scenario in
# the lab's guest, it has that, too.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
readonly root rounds=${1:-3} seconds=${2:-16} build=${BUILD:-$root/build} rate=200
readonly receivers=${RECEIVERS:-no-ecn}
readonly server=lunar-server$$ router=lunar-router$$ readers=lunar-readers$$
work=$(mktemp -d)
samples=${SAMPLES:-$work/samples}
tgtd=

clean() {
	[ -z "$tgtd" ] || kill "$tgtd" 2>/dev/null || :
	"$build/tgtd" qtcp unload >/dev/null 2>&1 || :
	for n in "$server" "$router" "$readers"; do ip netns delete "$n" 2>/dev/null || :; done
	rm -rf "$work"
}
trap clean EXIT

up() {
	local link
	for n in "$server" "$router" "$readers"; do ip netns add "$n" && ip -n "$n" link set lo up; done
	ip -n "$server" link add t0 type veth peer name t1 netns "$router"
	ip -n "$router" link add c0 type veth peer name c1 netns "$readers"
	ip -n "$server" link set t0 gso_max_segs 4
	ip -n "$server" address add 10.9.1.1/24 dev t0
	ip -n "$router" address add 10.9.1.2/24 dev t1
	ip -n "$router" address add 10.9.2.1/24 dev c0
	ip -n "$readers" address add 10.9.2.2/24 dev c1
	for link in "$server t0" "$router t1" "$router c0" "$readers c1"; do ip -n "${link% *}" link set "${link#* }" up; done
	ip -n "$server" route add 10.9.2.0/24 via 10.9.1.2
	ip -n "$readers" route add default via 10.9.2.1
	ip netns exec "$router" sysctl -q -w net.ipv4.ip_forward=1
	if [ "$receivers" = ecn ]; then
		ip netns exec "$readers" sysctl -q -w net.ipv4.tcp_ecn=1
		clang -O2 -target bpf -I"/usr/include/$(uname -m)-linux-gnu" -g -c "$root/scripts/bench/marks.bpf.c" -o "$work/marks.o"
		ip netns exec "$router" tc qdisc add dev c0 clsact
		ip netns exec "$router" tc filter add dev c0 egress bpf direct-action object-file "$work/marks.o" section tc
	fi
	ip netns exec "$router" tc qdisc add dev c0 root tbf rate ${rate}mbit burst 20k limit 1500000
}

# run GOVERNOR: Mbit/s of high, medium and low.
run() {
	local class loads=()
	rm -rf "$work/state" "$work/log" && mkdir "$work/state"
	sed -e "s/governor: false/governor: $1/" -e 's/congestion: dctcp/congestion: cubic/' -e 's/delay: 5ms/delay: 3ms/' \
		"$root/scripts/lab/conf/network-classes.yaml" >"$work/tgtd.yaml"
	[ "$1" != kernel ] || "$build/tgtd" qtcp load >/dev/null
	# Not by ip netns exec, which hides what is pinned in /sys/fs/bpf.
	nsenter --net="/run/netns/$server" "$build/tgtd" serve -c "$work/tgtd.yaml" --state-dir "$work/state" >"$work/log" 2>&1 &
	tgtd=$!
	until grep -qs msg=ready "$work/log"; do
		kill -0 "$tgtd" || { cat "$work/log" >&2; exit 1; }
		sleep 0.2
	done
	for class in high medium low; do
		ip netns exec "$readers" "$build/tgtload" --target iscsi://10.9.1.1/iqn.2026-01.lunar.lab:disk/0 --bs 64k --depth 16 \
			--initiator "iqn.2026-01.lunar.lab:$class" --warmup 6s --runtime "${seconds}s" --json >"$work/$class" &
		loads+=($!)
	done
	for class in "${loads[@]}"; do wait "$class"; done
	! grep "does not govern" "$work/log" >&2
	kill "$tgtd" && wait "$tgtd" || :
	tgtd=
	[ "$1" != kernel ] || "$build/tgtd" qtcp unload >/dev/null
	for class in high medium low; do
		sed -n 's/.*"bytes_per_second": *\([0-9.e+]*\).*/\1/p' "$work/$class"
	done | awk -v by="$receivers $1" '{ printf "%s%.1f", NR == 1 ? by " " : " ", $1 * 8 / 1e6 } END { print "" }'
}

up
for ((i = 0; i < rounds; i++)); do
	cut -d ' ' -f 1 /proc/loadavg >>"$samples.loads"
	for by in false true kernel; do run "$by" | tee -a "$samples" >&2; done
done
cat <<END
# Network classes, measured

Three initiators of the classes high, medium and low read with 16 commands of 64 KiB each through a bottleneck of $rate Mbit/s between network namespaces of one machine (veth, tbf). Receivers that are no-ecn answer no marks, so that the delay form governs (\`delay: 3ms\`). For those with ECN as in RFC 3168 a program in the kernel marks all packets that would wait for more than 4 ms, as a switch does whose RED is a step (\`scripts/bench/marks.bpf.c\`). The kernel's congestion control is cubic, which cuts for marks by itself, in the place of dctcp, which this machine's kernel does not have: it cuts what high has under way by more than tgtd's governor does, which leaves more to low.

The aim is 3:2:1 (50, 33 and 17 %), each share within a tenth of itself, and together 95 % of what they get that nobody governs. \`RECEIVERS=… scripts/bench/network.sh ROUNDS SECONDS\` measures it, \`make evidence-network\` both, and the lab's guest. Rounds are in turns; the table has medians (of an even number of rounds the lower middle), Mbit/s. $("$build/tgtd" version), Linux $(uname -r), $(nproc) CPUs, $(date -u +%F), $seconds s each; load average before each round: $(paste -sd' ' "$samples.loads"). What is more than these runs make is others' work, which takes from what is carried.

END

# table FILE KIND...: medians of the samples in a file.
table() {
	local kind by column
	printf '| receivers | governed by | rounds | high | medium | low | together | shares | of nobody'"'"'s |\n|---|---|---|---|---|---|---|---|---|\n'
	for kind in "${@:2}"; do
		for by in false true kernel; do
			for column in 3 4 5 6; do
				awk -v kind="$kind" -v by="$by" -v c="$column" '$1 == kind && $2 == by { $6 = $3 + $4 + $5; print $c }' "$1" | sort -n | awk '{ v[NR] = $1 } END { if (NR) print NR, v[int((NR + 1) / 2)] }'
			done | awk -v kind="$kind" -v by="$by" '{ n = $1; v[NR] = $2; if (NR < 4) sum += $2 } END {
				name["false"] = "nobody"; name["true"] = "tgtd"; name["kernel"] = "`lunar_qtcp`"
				if (NR) printf "| %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %.0f, %.0f, %.0f %% |\n", kind, name[by], n, v[1], v[2], v[3], v[4], 100*v[1]/sum, 100*v[2]/sum, 100*v[3]/sum }'
		done | awk -F '[|]' 'NR == 1 { plain = $8 } { printf "%s %.0f %% |\n", $0, 100 * $8 / plain }'
	done
	printf '\nAll rounds (receivers, governor: high medium low):\n\n'
	sed 's/^/    /' "$1"
}
table "$samples" no-ecn ecn
cat <<'END'

Not measured: what classes get beside others' traffic. This machine's kernel has no dctcp (CONFIG_TCP_CONG_DCTCP), by which receivers tell exactly what was marked. The simulator has it (`tgtsim run qtcp-server`), and so has the lab's guest, Debian's 6.1: `scripts/lab/run.sh network-classes` measures there, behind a kernel's RED.
END
[ -n "${GUEST:-}" ] || exit 0
awk '$1 == "sample" { by["plain"] = "false"; by["governor"] = "true"; by["kernel"] = "kernel"; print $3, by[$2], $4, $5, $6 }' "$GUEST" >"$work/guest"
cat <<END

## In the guest

$(sed -n 's/^bottleneck //p' "$GUEST") The sender's kernel has dctcp. What nobody governs shows whether the emulation carries the bottleneck. It is short of CPU time: tgtd's governor looks late, and grants ahead ([Network classes](../network-classes.md#classes-that-share-the-network)). Below 15 Mbit/s the smallest window, which lets 256 KiB a second through where nothing waits, is as large as low's part of the way, and flatters low.

END
table "$work/guest" dctcp cubic-ecn no-ecn
