# kill -9 of tgtd under checked I/O, twice: the initiator logs in again and no
# I/O fails, nothing that was acknowledged is lost.
attach disk
device=$(disk disk 0)
verified "$device" --bs=16k --size=48M --rate_iops=300 &
io=$!
for round in 1 2; do
	sleep 2
	must kill -0 "$io"
	host kill
	sleep 1
	must kill -0 "$io"
	host start
	sleep 3
done
must wait "$io"
equal "$(sessions_of disk | wc -l)" 1
no_io_errors
