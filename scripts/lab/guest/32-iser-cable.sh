# machines: rdma
# The cable is pulled out of the switch under checked I/O over iSER, for a moment and
# for longer than both sides wait for an answer, and put back.
. /lab/iser.bash

wire_up
PORTAL=$WIRE_TARGET:3260
# Without remote invalidation, with which ib_iser over rxe of Linux 6.1 seldom survives
# a packet that is sent again (docs/iser.md).
tgtd_configure "s/\"iser0\"/\"$PORTAL\"/; s/^server:/server:\n  iser: {remote-invalidation: false}/; s/interval: 5s, timeout: 5s/interval: 2s, timeout: 2s/"
tgtd_start
node disk "$PORTAL" iser
setting disk node.session.timeo.replacement_timeout 60
setting disk 'node.conn[0].timeo.noop_out_interval' 1
setting disk 'node.conn[0].timeo.noop_out_timeout' 2
login disk
disk=$(disk disk 0)
udevadm settle --timeout=30
before=$(cat /sys/class/net/wirei/statistics/rx_packets)

for seconds in 1 7; do
	fio --filename="$disk" --direct=1 --ioengine=libaio --iodepth=4 --rw=randwrite --bsrange=4k-64k --size=4M --rate=1M \
		--verify=crc32c --verify_fatal=1 --verify_dump=0 --clocksource=clock_gettime --name=checked >/tmp/fio 2>&1 &
	fio_pid=$!
	sleep 1
	wire_cut
	sleep "$seconds"
	kill -0 "$fio_pid" || fail "the I/O had ended already: $(tail -n 5 /tmp/fio)"
	wire_mend
	wait "$fio_pid" || { tail -n 12 /tmp/fio; fail "checked I/O did not survive $seconds s without cable"; }
	echo "survived $seconds s without cable"
done
no_io_errors
[ "$(cat /sys/class/net/wirei/statistics/rx_packets)" -gt $((before + 1000)) ] || fail "the data took another way"
grep -o 'session closed.*reason=.*' /tmp/tgtd.log | sed 's/initiator.*reason/reason/' | sort | uniq -c
logout disk
tgtd_stop
wire_down
