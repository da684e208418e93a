# machines: rdma
# The RDMA libraries through the binary that opens them at run time, on a Soft-RoCE
# device: what the fake in the unit tests promises is what the device does.
. /lab/rdma.bash

rdma_up
must ibv_devinfo -d "$RDMA_DEVICE"
ls -l /dev/infiniband
rping -s -a "$RDMA_ADDRESS" -C 3 >/tmp/rping 2>&1 &
pinged() { rping -c -a "$RDMA_ADDRESS" -C 3 >/dev/null 2>&1 && echo yes || echo no; } # no: nobody listens yet
eventually yes pinged
wait
[ -x /lab/native.test ] || fail "the host built no native.test: it has no libibverbs-dev and librdmacm-dev (scripts/setup/packages.sh test)"
[ -z "$(ldd /lab/native.test | grep -E 'ibverbs|rdmacm')" ] || fail "native.test needs the libraries to start"
LUNAR_RDMA_ADDRESS=$RDMA_ADDRESS must /lab/native.test -test.v -test.timeout 100s
must modprobe -a ib_isert iscsi_target_mod target_core_iblock target_core_file
for tool in iscsi-inq iscsi-readcapacity16 iscsi-test-cu; do command -v "$tool" >/dev/null || fail "no $tool"; done
[ -x /usr/sbin/tgtd ] || fail "no C tgt"
