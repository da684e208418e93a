# machines: rdma
# Sixteen logins at once over RDMA, I/O through all of them, and their end.
. /lab/iser.bash

tgtd_configure
tgtd_start
node disk "$PORTAL" iser
setting disk node.session.nr_sessions 16
# udev would read 32 disks for half a minute.
udevadm control --stop-exec-queue
login disk
equal "$(sessions_of disk | wc -l)" 16
equal "$(rdma_status connections)" 16
both_luns() { find_disks disk 0; find_disks disk 1; }
count_disks() { both_luns | wc -l; }
eventually 32 count_disks
for disk in $(find_disks disk 0); do
	dd if="$disk" of=/dev/null bs=64k count=4 iflag=direct status=none &
	readers+=($!)
done
for reader in "${readers[@]}"; do wait "$reader" || fail "a session cannot read"; done
must iscsiadm -m node -T "$BASE:disk" --logout
eventually 0 rdma_status connections
udevadm control --start-exec-queue
equal "$(rdma_status failures)" 0
no_io_errors
tgtd_stop
