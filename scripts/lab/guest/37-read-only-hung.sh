# machines: numa2
# seconds: 480
# The store hangs. Who may only read does not wait long: its kernel aborts its command,
# resets the unit and at last drops its session. None of that ends anything of who may
# write and waits. When the store goes on, the reader logs in again, and both go on
# without an error. What needs no store is answered all the time.
. /lab/numa.bash

must modprobe dm_mod
must modprobe brd rd_nr=1 rd_size=32768
must dmsetup create stopping --table "0 65536 linear /dev/ram0 0"
trap 'dmsetup resume stopping' EXIT # or nothing can be ended
(umask 077 && cp /lab/conf/read-only-hung.yaml /tmp/tgtd.yaml)
tgtd_start

two_initiators
for what in err_timeo.abort_timeout err_timeo.lu_reset_timeout err_timeo.tgt_reset_timeout; do
	must iscsiadm -m node -T "$BASE:shared" -I second -o update -n "node.session.$what" -v 3
done
setting shared node.session.timeo.replacement_timeout 300
# Pings would find a guest that is short of CPU time dead.
setting shared "node.conn[0].timeo.noop_out_interval" 0
login shared -p "$PORTAL"
mine=$(disk shared 0 "$INITIATOR")
reader=$(disk shared 0 "$SECOND")
udevadm settle --timeout=60
echo 400 >"/sys/block/${mine##*/}/device/timeout"
echo 10 >"/sys/block/${reader##*/}/device/timeout"

# state INITIATOR: of its session.
state() { cat "$(sessions_of shared "$1")/state"; }

# some_written: whether the writer's disk has ended requests.
some_written() { awk '{ print ($5 >= 20) }' "/sys/block/${mine##*/}/stat"; }

verified "$mine" --bs=16k --size=16M --rate_iops=50 &
io=$!
eventually 1 some_written
must dmsetup suspend --nolockfs --noflush stopping
dd if="$reader" of=/dev/null bs=64k count=16 skip=256 iflag=direct status=none &
reading=$!
must sg_turs "/dev/$(basename "/sys/block/${mine##*/}/device/scsi_generic/"*)"
eventually FAILED state "$SECOND" # after ABORT TASK, LOGICAL UNIT RESET and TARGET RESET
dmesg | grep -q 'detected conn error (1021)' || fail "the session was lost otherwise than by the reader's own error handler"
must kill -0 "$reading"
must kill -0 "$io"
equal "$(state "$INITIATOR")" LOGGED_IN
must dmsetup resume stopping
must wait "$reading"
must wait "$io"
eventually LOGGED_IN state "$SECOND"
equal "$(state "$INITIATOR")" LOGGED_IN
writer=$(sessions_of shared "$INITIATOR")
! dmesg | grep "connection${writer##*session}:0: detected conn error" || fail "the writer's session was lost"
no_io_errors

logout shared -p "$PORTAL"
tgtd_stop
must dmsetup remove stopping
trap - EXIT
must rmmod brd
