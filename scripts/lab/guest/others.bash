# What the benchmark of iSER compares with: C tgt and LIO, both with a target over
# RDMA and one over TCP, all on RAM.
TGT_PORT=3261 LIO_PORT=3262 LIO_ISER_PORT=3263
TGT_ISER_PORT=3260 # it takes no other: its parser of options fails over an old errno
LIO=/sys/kernel/config/target
tgt_pid=

# filled FILE MIB: without holes, which would be cheaper to read.
filled() { head -c "$2M" /dev/urandom >"$1"; }

# tgt_up MIB: targets tgt-iser and tgt-tcp, LUN 1, of one file on tmpfs.
tgt_up() {
	local tid=0 lld tries
	filled /dev/shm/tgt.img "$1"
	/usr/sbin/tgtd -f --iscsi "portal=$RDMA_ADDRESS:$TGT_PORT" --iser pool_sz_mb=64 >/tmp/tgt.log 2>&1 3>&- &
	tgt_pid=$!
	for ((tries = 0; tries < 50; tries++)); do
		tgtadm --mode system --op show >/dev/null 2>&1 && break
		sleep 0.2
	done
	for lld in iser:tgt-iser iscsi:tgt-tcp; do
		tid=$((tid + 1))
		tgt_admin "${lld%:*}" target new $tid -T "$BASE:${lld#*:}"
		tgt_admin "${lld%:*}" logicalunit new $tid --lun 1 -b /dev/shm/tgt.img --blocksize 4096
		tgt_admin "${lld%:*}" target bind $tid --initiator-address ALL
		tgt_admin "${lld%:*}" target bind $tid --initiator-name "$INITIATOR"
	done
}

# tgt_admin LLD MODE OP TID [OPTION...]
tgt_admin() { must tgtadm --lld "$1" --mode "$2" --op "$3" --tid "$4" "${@:5}"; }

# lio_up MIB: targets lio-iser and lio-tcp, LUN 0, of one RAM disk of LIO itself,
# which is the fastest that it has.
lio_up() {
	local backend=$LIO/core/rd_mcp_0/memory
	must modprobe -a target_core_mod iscsi_target_mod ib_isert
	mountpoint -q /sys/kernel/config || must mount -t configfs configfs /sys/kernel/config
	must mkdir -p "$backend"
	must lio_set "rd_pages=$(($1 * 256))" "$backend/control"
	must lio_set 1 "$backend/enable"
	must lio_set 4096 "$backend/attrib/block_size"
	lio_target lio-tcp "$LIO_PORT" 0 "$backend"
	lio_target lio-iser "$LIO_ISER_PORT" 1 "$backend"
}

lio_set() { printf '%s' "$1" >"$2"; }

# lio_target NAME PORT ISER BACKEND
lio_target() {
	local group=$LIO/iscsi/$BASE:$1/tpgt_1
	must mkdir -p "$group/np/$RDMA_ADDRESS:$2" "$group/lun/lun_0"
	[ "$3" = 0 ] || must lio_set 1 "$group/np/$RDMA_ADDRESS:$2/iser"
	must ln -s "$4" "$group/lun/lun_0/memory"
	must lio_set 0 "$group/attrib/authentication"
	must lio_set 1 "$group/attrib/generate_node_acls"
	must lio_set 0 "$group/attrib/demo_mode_write_protect"
	must lio_set 1 "$group/enable"
}

# others_down takes both away; nobody is logged in.
others_down() {
	local group
	kill -9 "$tgt_pid" 2>/dev/null || :
	for group in "$LIO/iscsi/$BASE":lio-*/tpgt_1; do
		must lio_set 0 "$group/enable"
		must rm "$group/lun/lun_0/memory"
		must rmdir "$group"/np/* "$group/lun/lun_0" "$group" "${group%/*}"
	done
	must rmdir "$LIO/core/rd_mcp_0/memory"
	rm -f /dev/shm/tgt.img
}
