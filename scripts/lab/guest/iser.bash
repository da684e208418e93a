# What scenarios over iSER use beside rdma.bash: tgtd in this guest.
. /lab/rdma.bash
. /lab/tgtd.bash
PORTAL=$RDMA_ADDRESS:3260

# tgtd_configure [SED-EXPRESSION]: the configuration, with a change.
tgtd_configure() { (umask 077 && sed -e "${1:-}" /lab/conf/iser.yaml >/tmp/tgtd.yaml); }

# rdma_status NAME: a counter of the device, as tgtd has it.
rdma_status() { /lab/lunar status --json | tr -d ' \n' | sed -n "s/.*\"devices\":\[{[^]]*\"$1\":\([0-9]*\).*/\1/p"; }

rdma_up
dmesg -C
