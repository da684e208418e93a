# machines: cluster
# when: named
# seconds: 10000
# A volume of a cluster under multipath: a program writes to blocks and to files and checks
# them, and does what the host says, which moves, kills and stops servers meanwhile
# (scripts/evidence/multipath). Arguments: the program's port on the host, a portal, and
# settings of multipath.
read -r control portal settings <<<"$ARGUMENTS"
BASE=iqn.2026-11.example.lunar PORTAL=$portal

dmesg --follow >/tmp/kernel.log 2>&1 &
log=$!
must iscsiadm -m discovery -t sendtargets -p "$PORTAL"
login db
disks() { find_disks db 0 | wc -l; }
eventually 3 disks
udevadm settle

cat >/etc/multipath.conf <<CONF
defaults {
	find_multipaths no
	path_grouping_policy group_by_prio
	prio alua
	detect_prio yes
	no_path_retry queue
	reservation_key 0xa1
$(tr ',=' '\n ' <<<"$settings" | sed 's/^/\t/')
}
CONF
modprobe -a dm_multipath scsi_dh_alua
must multipathd
trap 'multipathd shutdown >/dev/null 2>&1 || :; kill "$log"' EXIT
paths() { multipath -ll 2>/dev/null | grep -cE ' active (ready|ghost) ' || :; }
eventually 3 paths
multipath -ll
map=/dev/mapper/$(multipath -l -v1)

# The first 64 MiB are blocks, the rest has a file system.
size=$(blockdev --getsz "$map") blocks=$((64 << 11))
must dmsetup create blocks --table "0 $blocks linear $map 0"
must dmsetup create files --table "0 $((size - blocks)) linear $map $blocks"
must mkfs.ext4 -q /dev/mapper/files
mkdir -p /tmp/files
must mount /dev/mapper/files /tmp/files
must /lab/guest --host "127.0.0.1:$control" --disk /dev/mapper/blocks --files /tmp/files $(find_disks db 0)
umount /tmp/files
