# A LOGICAL UNIT RESET by who may only read is answered, and does not disturb the
# checked I/O of who may write; the reader goes on reading.
two_initiators
login shared -p "$PORTAL"
mine=$(disk shared 0 "$INITIATOR")
reader=$(disk shared 0 "$SECOND")
generic=/dev/$(basename "/sys/block/${reader##*/}/device/scsi_generic/"*)
verified "$mine" --bs=16k --size=8M --rate_iops=200 &
io=$!
for _ in 1 2 3; do
	must kill -0 "$io"
	must sg_reset --device --no-esc "$generic"
	must dd if="$reader" of=/dev/null bs=64k count=16 iflag=direct status=none
done
must wait "$io"
no_io_errors
