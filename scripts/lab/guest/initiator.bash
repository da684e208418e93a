# What every scenario uses: open-iscsi, disks, checked I/O and the host.

INITIATOR=iqn.2026-01.test.lunar:guest
SECOND=iqn.2026-01.test.lunar:second
BASE=iqn.2026-01.lunar.lab
PORTAL=127.0.0.1:${PORT:-3260}

fail() { echo "FAILED: $*"; exit 1; }

# stopped is said when a command that nothing checks ends the scenario.
stopped() { echo "FAILED: $BASH_COMMAND (status $?)"; }

# must COMMAND...: shows it; its output is shown too, and a failure ends the scenario.
must() {
	echo "+ $*"
	"$@" || fail "$* (status $?)"
}

# equal FOUND EXPECTED
equal() { [ "$1" = "$2" ] || fail "found '$1', expected '$2'"; }

# eventually EXPECTED COMMAND...: prints it, within a minute.
eventually() {
	local tries found
	for ((tries = 0; tries < 300; tries++)); do
		found=$("${@:2}")
		[ "$found" != "$1" ] || return 0
		sleep 0.2
	done
	fail "${*:2}: found '$found', expected '$1'"
}

# refused COMMAND...: the command must fail.
refused() {
	echo "! $*"
	! "$@" || fail "succeeded, but must be refused: $*"
}

# host WORD [ARGUMENT...]: a request to the lab's host (kill, start, stop,
# connections, attach, sum VOLUME, apply CONFIGURATION, drain PORTAL TO).
host() {
	local verdict text
	echo "host $*" >&3
	read -r verdict text <&3
	[ "$verdict" = ok ] || fail "host could not $*: $text"
	printf '%s\n' "$text"
}

# discover [OPTION...]: the names that SendTargets shows, sorted.
discover() { iscsiadm -m discovery -t sendtargets -p "$PORTAL" -o nonpersistent "$@" | awk '{ print $2 }' | sort -u; }

# node TARGET [PORTAL [IFACE]]: a record to log in with.
node() { must iscsiadm -m node -o new -T "$BASE:$1" -p "${2:-$PORTAL}" -I "${3:-default}"; }

# setting TARGET NAME VALUE: of all records of the target.
setting() { must iscsiadm -m node -T "$BASE:$1" -o update -n "$2" -v "$3"; }

# chap TARGET USER SECRET [TARGET'S USER, TARGET'S SECRET]
chap() {
	setting "$1" node.session.auth.authmethod CHAP
	setting "$1" node.session.auth.username "$2"
	setting "$1" node.session.auth.password "$3"
	[ $# -lt 5 ] || setting "$1" node.session.auth.username_in "$4"
	[ $# -lt 5 ] || setting "$1" node.session.auth.password_in "$5"
}

login() { must iscsiadm -m node -T "$BASE:$1" "${@:2}" --login; }
login_refused() { refused iscsiadm -m node -T "$BASE:$1" "${@:2}" --login; }

# logout waits until udev has read the new disks: a disk that goes away under it
# is an I/O error of the initiator's own making.
logout() {
	udevadm settle --timeout=30
	must iscsiadm -m node -T "$BASE:$1" "${@:2}" --logout
}

# attach TARGET: the usual way in.
attach() {
	node "$1"
	login "$1"
}

# iface NAME INITIATOR: an initiator of another name in this guest.
iface() {
	must iscsiadm -m iface -I "$1" -o new
	must iscsiadm -m iface -I "$1" -o update -n iface.transport_name -v tcp
	must iscsiadm -m iface -I "$1" -o update -n iface.initiatorname -v "$2"
}

# two_initiators: this guest under two names, with records of what both may use.
two_initiators() {
	iface first "$INITIATOR"
	iface second "$SECOND"
	must iscsiadm -m discovery -t sendtargets -p "$PORTAL" -I first -I second
}

# sessions_of TARGET [INITIATOR]: their sysfs directories.
sessions_of() {
	local session
	for session in /sys/class/iscsi_session/session*; do
		[ "$(cat "$session/targetname" 2>/dev/null)" = "$BASE:$1" ] || continue
		[ -z "${2:-}" ] || [ "$(cat "$session/initiatorname")" = "$2" ] || continue
		printf '%s\n' "$session"
	done
}

# find_disks TARGET LUN [INITIATOR]: the block devices, one per session.
find_disks() {
	local session block
	for session in $(sessions_of "$1" "${3:-}"); do
		for block in "$session"/device/target*/*:"$2"/block/sd*; do
			[ -e "$block" ] && printf '/dev/%s\n' "${block##*/}"
		done
	done
	return 0
}

# disk TARGET LUN [INITIATOR]: the first of them, when it is there.
disk() {
	local tries found
	for ((tries = 0; tries < 300; tries++)); do
		found=$(find_disks "$@")
		found=${found%%$'\n'*}
		[ -b "$found" ] && { printf '%s\n' "$found"; return; }
		sleep 0.2
	done
	echo "no disk for $BASE:$1 LUN $2 after a minute: $(lsscsi -t)" >&2
	return 1
}

# verified DEVICE FIO-OPTION...: random writes, each read back and checked.
verified() {
	local log
	log=$(mktemp)
	echo "+ checked I/O on $*"
	fio --filename="$1" --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite \
		--verify=crc32c --verify_fatal=1 --verify_dump=0 --clocksource=clock_gettime \
		--name=checked "${@:2}" >"$log" 2>&1 || { tail -n 12 "$log"; fail "checked I/O on $*"; }
	grep -E '^ +(read|write):' "$log"
}

# verified_sizes DEVICE: the same one after the other in small, large and mixed blocks.
verified_sizes() {
	verified "$1" --bs=4k --size=2M \
		--name=large --stonewall --bs=256k --size=16M --offset=4M \
		--name=mixed --stonewall --bsrange=4k-256k --size=4M --offset=20M
}

# file_system TYPE DEVICE: makes one, writes, mounts it anew and compares.
file_system() {
	local at
	at=$(mktemp -d)
	must "mkfs.$1" -q "$2"
	must mount "$2" "$at"
	head -c 8M /dev/urandom >"$at/written"
	mkdir -p "$at/many"
	local n
	for ((n = 0; n < 100; n++)); do echo "$n" >"$at/many/$n"; done
	(cd "$at" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >/tmp/sums
	must umount "$at"
	blockdev --flushbufs "$2"
	must "fsck.$1" -n "$2"
	must mount "$2" "$at"
	(cd "$at" && must sha256sum --quiet -c /tmp/sums)
	must umount "$at"
}

# link_up brings the network up with its routes, which a fallen link loses.
link_up() {
	ip link set eth0 up
	ip route replace 127.0.0.0/8 via 10.0.2.2 src 10.0.2.15
}

# no_io_errors: the kernel reported none since the scenario began.
no_io_errors() {
	local errors
	errors=$(dmesg | grep -E 'I/O error|critical .* error|Buffer I/O|EXT4-fs error|XFS .*error' || :)
	[ -z "$errors" ] || fail "the kernel reported: $errors"
}

# leave_nothing takes the guest back to its first state.
leave_nothing() {
	pkill -9 -x fio
	multipath -F
	findmnt -rn -o TARGET -t xfs,ext4 | grep -v '^/$' | xargs -r umount -l
	pgrep -x iscsid >/dev/null || iscsid
	timeout 20 iscsiadm -m node -u
	pkill -9 -x tgtd
	rm -rf /etc/iscsi/nodes/* /etc/iscsi/send_targets/* /etc/iscsi/ifaces/*
}
