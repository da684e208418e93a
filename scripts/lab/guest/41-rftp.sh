# machines: rdma
# when: named
# seconds: 900
# A volume goes from one tgtd to another over RDMA (RFTP) between two Soft-RoCE devices with a
# cable, through the kernel's verbs. The sender is killed in the middle, and sends again what is
# missing; then once more what was written since. The copies are the same bytes each time.
. /lab/rdma.bash
. /lab/tgtd.bash
declare -A process
readonly MIB=16 KEY=/tmp/move.key

# begin SIDE ADDRESS VOLUMES: a tgtd of its own.
begin() {
	mkdir -p "/tmp/$1/state"
	(
		umask 077
		cat <<YAML
server: {buffers-per-thread: 16MiB, threads: 1}
portal-groups: {lab: {listen: ["$2:3260"]}}
volumes: {$3}
YAML
	) >"/tmp/$1/tgtd.yaml"
	/lab/tgtd serve -c "/tmp/$1/tgtd.yaml" --state-dir "/tmp/$1/state" >>"/tmp/$1/log" 2>&1 3>&- &
	process[$1]=$!
	eventually yes answers "$1"
}
answers() { at "$1" status >/dev/null 2>&1 && echo yes || echo no; }

# at SIDE COMMAND...: asks its server.
at() { /lab/lunar "${@:2}" --socket "/tmp/$1/state/control.sock"; }

# receive [OPTION...]: in the background, until a move has come to its end.
receive() {
	at to volume receive copy /tmp/to/copy.img --key-file $KEY --listen "rdma://$WIRE_TARGET:3262" "$@" >>/tmp/received 2>&1 3>&- &
	receiving=$!
	eventually yes waits
}
waits() { at to jobs | grep -q running && [ -s $KEY ] && echo yes || echo no; }
send() { at from volume send disk "rdma://$WIRE_TARGET" --key-file $KEY "$@"; }
# sent: again while the machine is too slow for the last blocks in the time that commands may
# be held; each try goes on where the last one was.
sent() {
	local tries
	for ((tries = 0; tries < 6; tries++)); do
		! send >/tmp/sent 2>&1 || { cat /tmp/sent; return; }
		cat /tmp/sent
	done
	fail "the volume was not sent"
}
ended() { wait "$receiving" || fail "the receiver: $(tail -n 3 /tmp/received)"; }

wire_up
mkdir -p /tmp/from /tmp/to
dd if=/dev/urandom of=/tmp/from/disk.img bs=1M count=$MIB status=none
readonly DISK="disk: {type: file, path: /tmp/from/disk.img}"
begin from "$WIRE_INITIATOR" "$DISK"
begin to "$WIRE_TARGET" ""

receive --standby
send --rate 1 >/tmp/sent 2>&1 3>&- &
sending=$!
stored() { [ "$(du -k /tmp/to/copy.img.receiving 2>/dev/null | cut -f 1)" -ge 4096 ] 2>/dev/null && echo yes || echo no; }
eventually yes stored
kill -0 "$sending" || fail "the move had ended already: $(cat /tmp/sent)"
kill -9 "${process[from]}"
wait "$sending" || :
begin from "$WIRE_INITIATOR" "$DISK"
sent
grep -q 'there already [1-9]' /tmp/sent || fail "nothing of the broken move was there"
ended
cmp /tmp/from/disk.img /tmp/to/copy.img.receiving || fail "the copy differs"

kill "${process[from]}"
wait "${process[from]}" || fail "the sender did not end in order"
dd if=/dev/urandom of=/tmp/from/disk.img bs=4k seek=100 count=3 conv=notrunc status=none
begin from "$WIRE_INITIATOR" "$DISK"
receive
sent
grep -q ' sent [01], ' /tmp/sent || fail "expected that the one MiB is sent which differs"
ended
cmp /tmp/from/disk.img /tmp/to/copy.img || fail "the copy differs"
equal "$(at to volume checksum copy)" "$(at from volume checksum disk)"
! grep -E '^(panic|fatal error)' /tmp/from/log /tmp/to/log || fail "tgtd panicked"
for side in from to; do
	kill "${process[$side]}"
	wait "${process[$side]}" || fail "$side did not end in order"
done
wire_down
