# Task management under checked I/O: LOGICAL UNIT RESET and TARGET RESET.
attach disk
device=$(disk disk 0)
verified "$device" --bs=16k --size=24M --rate_iops=300 &
io=$!
for kind in --device --target --device; do
	sleep 1
	must kill -0 "$io"
	must sg_reset "$kind" "$device"
done
must wait "$io"
no_io_errors
