#!/usr/bin/env bash
# run.sh [NAME...]: runs libiscsi's conformance suite against volumes of a tgtd
# of its own (default: file ram file4k cached back removable encrypted protected
# sanitize)
# and compares every test with the list expected-NAME.txt. A test that fails or is skipped without being in
# the list fails the run; so does one in the list that passes. "cached" and
# "back" are behind the block cache, with write: through and write: back. Of
# "protected", which cannot be written, and "sanitize", which is overwritten slowly
# enough to be seen, only the suites that are about that are run. All families of
# the suite are run on "file"; the other volumes get the one that has every test.
#
# run.sh --url NAME URL [URL2]: the same against a target that runs already.
# URL2 is a second path to the same logical unit. TGTD names another binary,
# CONFORMANCE_LIMIT the seconds that one volume may take (default 600).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/server.bash"
trap clean_up EXIT

readonly limit=${CONFORMANCE_LIMIT:-600}
readonly results=$root/build/conformance
readonly base=iqn.2026-11.example.conformance

# options NAME: of the suite for the volume.
options() {
	case $1 in
	protected) printf '%s\n' -t ALL.ReadOnly ;;
	sanitize) printf '%s\n' -S -t ALL.Sanitize ;;
	file) ;;
	*) printf '%s\n' -t ALL ;;
	esac
}

# examine NAME URL [URL2]: one run of the suite; the destructive tests too.
examine() {
	local name=$1 status=0 more
	mapfile -t more < <(options "$name")
	shift
	stdbuf -oL timeout --kill-after=5 "$limit" iscsi-test-cu -d "${more[@]}" -v "$@" >"$results/$name.log" 2>&1 || status=$?
	awk -f "$here/results.awk" "$results/$name.log" >"$results/$name.results"
	[ "$status" != 124 ] && [ "$status" != 137 ] || say "$name: not finished after $limit s"
	awk -f "$here/compare.awk" "$here/expected-$name.txt" "$results/$name.results" >"$results/$name.summary" || status=differs
	# The summary comes last, the differences before it.
	sed "s/^/conformance: $name: /" "$results/$name.summary"
	[ "$status" != differs ]
}

main() {
	local name port failed=0 paths
	mkdir -p "$results"
	if [ "${1-}" = --url ]; then
		shift
		examine "$@"
		return
	fi
	[ $# -gt 0 ] || set -- file ram file4k cached back removable encrypted protected sanitize
	port=$(free_port)
	make_config "$port"
	start_server "$work/config.yaml" "$port"
	for name; do
		paths=("iscsi://127.0.0.1:$port/$base:$name/0" "iscsi://127.0.0.2:$port/$base:$name/0")
		# Sanitize.Reservations leaves a second path with the reservation.
		[ "$name" != sanitize ] || unset 'paths[1]'
		examine "$name" "${paths[@]}" || failed=1
	done
	stop_server
	[ "$failed" = 0 ] || die "FAILED (logs in build/conformance)"
	say "ok"
}

command -v iscsi-test-cu >/dev/null || die "no iscsi-test-cu in PATH; scripts/setup/packages.sh test installs it"
main "$@"
