# machines: rdma
# Sixteen logins at once over RDMA, I/O through all of them, and their end.
. /lab/iser.bash

tgtd_configure
tgtd_start
node suite "$PORTAL" iser
setting suite node.session.nr_sessions 16
# udev would read the disks for a quarter of a minute.
udevadm control --stop-exec-queue
login suite
equal "$(sessions_of suite | wc -l)" 16
equal "$(rdma_status connections)" 16
count_disks() { find_disks suite 0 | wc -l; }
eventually 16 count_disks
for disk in $(find_disks suite 0); do
	dd if="$disk" of=/dev/null bs=64k count=4 iflag=direct status=none &
	readers+=($!)
done
for reader in "${readers[@]}"; do wait "$reader" || fail "a session cannot read"; done
must iscsiadm -m node -T "$BASE:suite" --logout
eventually 0 rdma_status connections
udevadm control --start-exec-queue
equal "$(rdma_status failures)" 0
no_io_errors
tgtd_stop
