#!/usr/bin/env bash
# run.sh [SCENARIO...]   runs the named scenarios, or all
# run.sh list            names them
# run.sh shell [MACHINE] a shell in the guest, with a tgtd that serves it
#
# A scenario that a machine with several NUMA nodes runs is named NAME@MACHINE;
# NAME alone is the scenario on all its machines.
#
# Scenarios with tgtd on the host run beside those with tgtd in the guest: in two
# lanes, with a guest each, for emulated hardware keeps little more than one CPU busy.
#
# Environment: TGTD (build/tgtd), LAB_LOGS (build/lab), LAB_SECONDS (1800: a
# bound against hanging; a run takes far less), LAB_ARGUMENTS (for the scenario,
# if it has any), LAB_FILES (a directory of more files for the guest's /lab),
# LUNAR_CACHE (where the image is kept). LAB_LANE is what run.sh tells itself.
set -euo pipefail

lab=$(cd "$(dirname "$0")" && pwd)
readonly lab
root=$(cd "$lab/../.." && pwd)
readonly root
readonly tgtd=${TGTD:-$root/build/tgtd}
readonly lunar=$(dirname "$tgtd")/lunar
readonly logs=${LAB_LOGS:-$root/build/lab}
readonly deadline=${LAB_SECONDS:-1800}
readonly lane=${LAB_LANE:-}
readonly results=$logs/results$lane.tap
readonly boot_seconds=150 boots=3
readonly crash='^(panic|fatal error|WARNING: DATA RACE|unexpected fault|SIG[A-Z]+):?'

. "$lab/target.bash"
. "$lab/guest.bash"

die() { printf 'lab: %s\n' "$*" >&2; exit 1; }

# list_scenarios [all]: NN-NAME, or NN-NAME@MACHINE, in the order that boots least.
# Without all, those are left out that run only when they are named.
list_scenarios() {
	local machine file
	for machine in $machines; do
		for file in "$lab"/guest/[0-9]*.sh; do
			[[ " $(machines_of "$file") " = *" $machine "* ]] || continue
			[ "${1:-}" = all ] || ! grep -qx '# when: named' "$file" || continue
			file=$(basename "$file" .sh)
			[ "$machine" = initiator ] || file+=@$machine
			printf '%s\n' "$file"
		done
	done
}

# machines_of FILE: what its line "# machines: NAME..." says.
machines_of() { sed -n 's/^# machines: //p' "$1" | grep . || echo initiator; }

# machine_of SCENARIO
machine_of() { [[ $1 = *@* ]] && echo "${1#*@}" || echo initiator; }

# seconds_of SCENARIO: how long it may take.
seconds_of() { sed -n 's/^# seconds: //p' "$lab/guest/${1%@*}.sh" | grep . || echo 240; }

# named WORD: the scenarios of that name, with or without number and machine.
named() {
	list_scenarios all | awk -v word="$1" '{ name = $0; sub(/^[0-9]+-/, "", name); base = name; sub(/@.*/, "", base) }
		$0 == word || name == word || base == word { print; found = 1 } END { exit !found }'
}

free_port() {
	local try
	for ((try = 0; try < 50; try++)); do
		port=$((20000 + RANDOM % 10000))
		target_listens || return 0
	done
	die "found no free port in 20000-29999"
}

# prepare_packages: those of two versions of this tree, which the machine systemd installs.
prepare_packages() {
	local version
	mkdir -p "$runtime/packages" "$logs"
	for version in 1.0.0 1.1.0; do
		VERSION=$version ARCHITECTURES=$(go env GOHOSTARCH) FORMATS=deb PACKAGES=lunar "$root/scripts/dist/dist.sh" "$runtime/dist" >"$logs/dist.log" 2>&1 ||
			{ cat "$logs/dist.log" >&2; die "the packages could not be made"; }
		mv "$runtime/dist"/*.deb "$runtime/packages/"
	done
}

# prepare SCENARIO...
prepare() {
	[ -x "$tgtd" ] && [ -x "$lunar" ] || die "no $tgtd, or no lunar beside it: run 'go build -o build/ ./cmd/tgtd ./cmd/lunar' first, or set TGTD"
	command -v qemu-system-x86_64 >/dev/null || die "no QEMU: run scripts/setup/packages.sh test"
	command -v go >/dev/null || die "no Go: it builds numacheck, which looks at the memory of tgtd in the guests"
	image=$("$lab/build.sh")
	# The time of the run counts from here: an image is built only once.
	SECONDS=0
	runtime=$(mktemp -d)
	segment=$(mktemp -d -p /dev/shm lunar-lab.XXXXXX)
	trap clean EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	free_port
	ln -s "$(realpath "$tgtd")" "$runtime/tgtd"
	ln -s "$(realpath "$lunar")" "$runtime/lunar"
	[[ " $* " != *@network\ * ]] || (cd "$root" && CGO_ENABLED=0 go build -o "$runtime/tgtload" ./cmd/tgtload)
	(cd "$root/scripts" && CGO_ENABLED=0 go build -o "$runtime/numacheck" ./lab/numacheck)
	[ ! -e /usr/include/rdma/rdma_cma.h ] || (cd "$root" && go test -c -tags rdma -o "$runtime/native.test" ./iser/verbs/native)
	[[ " $* " != *@systemd\ * ]] || prepare_packages
	! command -v cc >/dev/null || cc -shared -fPIC -O -fno-builtin -o "$runtime/gentle.so" "$root/scripts/conformance/gentle.c"
}

clean() {
	guest_end
	target_runs && target_kill
	rm -rf "$runtime" "$segment" ${dir:+"$dir/store"}
}

enter() {
	local name
	dir=$logs/$1
	rm -rf "$dir"
	mkdir -p "$dir"
	name=${1#*-}
	target_configure "${name%@*}"
}

report() { printf '%s\n' "$*" | tee -a "$results"; }

# explain shows what is needed to know why a scenario failed: how it ended, and
# tgtd's last lines, or the beginning of its panic.
explain() {
	local log=$dir/tgtd.log
	report "# --- last lines of $dir/guest.log"
	report "$(tail -n 25 "$dir/guest.log" | sed 's/^/#   /')"
	report "# --- from $log"
	if grep -qE "$crash" "$log"; then
		report "$(grep -A 25 -m 1 -E "$crash" "$log" | sed 's/^/#   /')"
	else
		report "$(tail -n 12 "$log" | sed 's/^/#   /')"
	fi
}

# boot MACHINE: has its guest running. A guest that was lost before is replaced. A boot
# that hangs is tried again: emulated CPUs lose a timer now and then, before anything of
# this tree runs.
boot() {
	local began=$SECONDS try
	[ -z "$guest_pid" ] || [ "$guest_machine" != "$1" ] || return 0
	for ((try = 1; try <= boots; try++)); do
		guest_end
		guest_start "$1" && { report "# $1 booted in $((SECONDS - began)) s"; return 0; }
		report "# $1 did not boot: $line"
		tail -n 20 "$logs/console$lane.log" "$logs/qemu$lane.log"
	done
	guest_end
	return 1
}

# attempt SCENARIO: 0 passed, 200 failed and the guest is of no more use, else
# failed.
attempt() {
	local left bound status=0
	touch "$dir/guest.log" "$dir/tgtd.log"
	[ -n "$guest_pid" ] || { echo "no guest" >>"$dir/guest.log"; return 200; }
	! target_here "$guest_machine" || target_start >>"$dir/guest.log" || return 1
	left=$((deadline - SECONDS)) bound=$(($(seconds_of "$1") + 30))
	guest_run "${1%@*}" "$((left < bound ? left : bound))" || status=$?
	if [ "$status" = 0 ] && target_here "$guest_machine" && ! target_runs; then
		echo "tgtd ended during the scenario" >>"$dir/guest.log"
		status=1
	fi
	target_stop >>"$dir/guest.log" || status=$((status ? status : 1))
	rm -rf "$dir/store"
	return "$status"
}

run_scenarios() {
	local scenario number=0 failures=0 began status
	report "1..$#"
	for scenario; do
		number=$((number + 1))
		boot "$(machine_of "$scenario")" || :
		enter "$scenario"
		began=$SECONDS status=0
		attempt "$scenario" || status=$?
		[ "$status" != 200 ] || guest_end
		if [ "$status" = 0 ]; then
			report "ok $number - ${scenario#*-} # $((SECONDS - began)) s"
			continue
		fi
		failures=$((failures + 1))
		report "not ok $number - ${scenario#*-} # $((SECONDS - began)) s"
		explain
	done
	report "# $((number - failures)) of $number passed in $SECONDS s, boot included"
	return $((failures > 0))
}

# in_lanes SCENARIO...: each lane is a run of its own; what they found becomes one report.
# Returns 200 if all are of one lane.
in_lanes() {
	local scenario host=() guest=() status=0
	for scenario; do
		if target_here "$(machine_of "$scenario")"; then host+=("$scenario"); else guest+=("$scenario"); fi
	done
	[ "${#host[@]}" -gt 0 ] && [ "${#guest[@]}" -gt 0 ] || return 200
	"$lab/build.sh" >/dev/null || return 1
	mkdir -p "$logs"
	trap 'kill $(jobs -p) 2>/dev/null || :' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	LAB_LANE=.guest "$0" "${guest[@]}" &
	LAB_LANE=.host "$0" "${host[@]}" &
	wait %1 || status=1
	wait %2 || status=1
	awk -v count=$# 'BEGIN { print "1.." count } /^1\.\.|passed in/ { next } /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n) } { print }' \
		"$logs"/results.{host,guest}.tap >"$logs/results.tap"
	printf '# %d of %d passed in %d s\n' "$(grep -c '^ok ' "$logs/results.tap")" $# "$SECONDS" | tee -a "$logs/results.tap"
	return "$status"
}

# shell MACHINE
shell() {
	enter 00-shell
	if ! target_here "$1"; then
		echo "lab: the scenarios, tgtd and numacheck are in /lab; the guest powers off when its shell ends" >&2
	else
		target_start || die "$(tail -n 5 "$dir/tgtd.log")"
		echo "lab: tgtd log in $dir/tgtd.log; the guest powers off when its shell ends" >&2
	fi
	guest_command shell "$1"
	"${qemu[@]}" -chardev stdio,id=console,signal=off -serial chardev:console
}

main() {
	local word found scenarios=()
	case ${1:-} in
	list) list_scenarios all | sed 's/^[0-9]*-//' && return ;;
	shell)
		[[ " $machines " = *" ${2:-initiator} "* ]] || die "no machine '$2', expected one of $machines"
		prepare "@${2:-initiator}"
		shell "${2:-initiator}"
		return
		;;
	esac
	for word; do
		found=$(named "$word") || die "no scenario '$word': see '$0 list'"
		mapfile -t -O ${#scenarios[@]} scenarios <<<"$found"
	done
	[ $# -gt 0 ] || mapfile -t scenarios < <(list_scenarios)
	if [ -z "$lane" ]; then
		in_lanes "${scenarios[@]}" && return
		[ $? = 200 ] || return 1
	fi
	mkdir -p "$logs"
	prepare "${scenarios[@]}"
	: >"$results"
	boot "$(machine_of "${scenarios[0]}")" || die "nothing was tried"
	run_scenarios "${scenarios[@]}"
}

main "$@"
