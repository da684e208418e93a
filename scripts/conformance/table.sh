#!/usr/bin/env bash
# table.sh --peer: runs libiscsi's conformance suite against Debian's tgt, as
# root, with a file as large as run.sh's.
# table.sh: writes docs/internals/conformance.md from those results and the ones of run.sh,
# which have to be there.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/server.bash"
peer_pid=
trap '[ -z "$peer_pid" ] || kill -KILL "$peer_pid" 2>/dev/null || true; clean_up' EXIT

readonly results=$root/build/conformance
readonly page=$root/docs/internals/conformance.md
readonly iqn=iqn.2026-11.example.conformance:tgt
readonly runs=(file file4k ram cached back removable encrypted protected sanitize)
readonly control=77 # of tgt, so that no other instance is met

# ask_peer ARGS...: tgt's administration.
ask_peer() { tgtadm -C "$control" --lld iscsi "$@"; }

# start_peer PORT: Debian's tgt with one file.
start_peer() {
	truncate -s 1G "$work/disk"
	tgtd -f -C "$control" --iscsi "portal=127.0.0.1:$1" >"$work/peer.log" 2>&1 &
	peer_pid=$!
	for _ in {1..100}; do
		ask_peer --op show --mode system >/dev/null 2>&1 && break
		sleep 0.1
	done
	ask_peer --op new --mode target --tid 1 -T "$iqn"
	ask_peer --op new --mode logicalunit --tid 1 --lun 1 -b "$work/disk"
	sleep 1 # until the disk is there
	ask_peer --op bind --mode target --tid 1 -I ALL
}

run_peer() {
	local port
	port=$(free_port)
	mkdir -p "$results"
	start_peer "$port"
	stdbuf -oL timeout --kill-after=5 600 iscsi-test-cu -d -v "iscsi://127.0.0.1:$port/$iqn/1" "iscsi://127.0.0.1:$port/$iqn/1" \
		>"$results/tgt.log" 2>&1 || true
	awk -f "$here/results.awk" "$results/tgt.log" >"$results/tgt.results"
}

write_page() {
	local name lists=("${runs[@]/#/$here/expected-}")
	for name in tgt "${runs[@]}"; do
		[ -s "$results/$name.results" ] || die "no results of $name: run run.sh and table.sh --peer first"
	done
	cd "$results"
	awk -v peer="tgt $(dpkg-query -W -f '${Version}' tgt)" -v suite="libiscsi $(dpkg-query -W -f '${Version}' libiscsi-bin)" \
		-f "$here/table.awk" "${lists[@]/%/.txt}" tgt.results "${runs[@]/%/.results}" >"$page"
	say "wrote docs/internals/conformance.md"
}

if [ "${1-}" = --peer ]; then run_peer; else write_page; fi
