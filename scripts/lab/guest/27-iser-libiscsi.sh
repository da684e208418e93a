# machines: rdma
# libiscsi over RDMA, which has plain keys that must not be invalidated; and ib_iser
# that registers its memory once.
. /lab/iser.bash

tgtd_configure
tgtd_start
url=iser://$PORTAL/$BASE:suite/0
must iscsi-inq "$url"
must iscsi-readcapacity16 "$url"
equal "$(rdma_status invalidations)" 0

must modprobe -r ib_iser
must modprobe ib_iser always_register=0
node disk "$PORTAL" iser
login disk
verified "$(disk disk 0)" --bsrange=4k-64k --size=2M
equal "$(rdma_status invalidations)" 0
logout disk
must modprobe -r ib_iser
must modprobe ib_iser
no_io_errors
tgtd_stop
