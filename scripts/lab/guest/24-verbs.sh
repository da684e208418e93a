# machines: rdma
# The machine itself: a Soft-RoCE device on which connections can be made.
. /lab/rdma.bash

rdma_up
must ibv_devinfo -d "$RDMA_DEVICE"
ls -l /dev/infiniband
rping -s -a "$RDMA_ADDRESS" -C 3 >/tmp/rping 2>&1 &
sleep 0.5
must rping -c -a "$RDMA_ADDRESS" -C 3
wait
must modprobe -a ib_isert iscsi_target_mod target_core_iblock target_core_file
for tool in iscsi-inq iscsi-readcapacity16 iscsi-test-cu; do command -v "$tool" >/dev/null || fail "no $tool"; done
[ -x /usr/sbin/tgtd ] || fail "no C tgt"
