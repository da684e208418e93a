# machines: rdma
# Sessions over iSER end and come back: tgtd killed under I/O, a logout in the middle
# of I/O. The link of the device itself is not taken down: after that rxe of Linux 6.1
# makes no connection any more if there was one, be it rping's or that of a session with
# LIO, until the device is made anew. The scenario iser-cable cuts elsewhere.
. /lab/iser.bash

tgtd_configure
tgtd_start
node disk "$PORTAL" iser
setting disk node.session.timeo.replacement_timeout 60
login disk
disk=$(disk disk 0)

# checked_meanwhile: writes that are verified, in the background.
checked_meanwhile() {
	fio --filename="$disk" --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite --bsrange=4k-128k --size=12M --rate=3M \
		--verify=crc32c --verify_fatal=1 --verify_dump=0 --clocksource=clock_gettime --name=checked >/tmp/fio 2>&1 &
	fio_pid=$!
	sleep 1.5
	kill -0 "$fio_pid" || fail "the I/O had ended already: $(tail -n 5 /tmp/fio)"
}

checked_to_the_end() { wait "$fio_pid" || { tail -n 12 /tmp/fio; fail "checked I/O did not survive"; }; }

checked_meanwhile
tgtd_kill
sleep 1
tgtd_start
checked_to_the_end
echo "survived tgtd's death"

no_io_errors

# The session goes in the middle of I/O; what it had under way ends with an error.
dd if=/dev/zero of="$disk" bs=64k count=4000 oflag=direct status=none 2>/tmp/dd &
dd_pid=$!
sleep 0.5
must iscsiadm -m node -T "$BASE:disk" --logout
! wait "$dd_pid" || fail "what was written by a session that is gone succeeded"
eventually 0 rdma_status connections
grep -c 'session closed' /tmp/tgtd.log
tgtd_stop
