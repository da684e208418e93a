# machines: numa2
# A thin volume on a file system that becomes full: writes that need space fail with
# DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT, which Linux calls "No space
# left on device"; reads and overwrites go on; with space again writes go on, and
# nothing that was acknowledged is missing.
. /lab/numa.bash

modprobe -a loop iscsi_tcp
truncate -s 24M /tmp/small.img
mkfs.ext4 -q -O ^has_journal /tmp/small.img
mkdir -p /tmp/small
must mount -o loop /tmp/small.img /tmp/small
head -c 1M /dev/urandom >/tmp/data
head -c 8M /dev/urandom >/tmp/head

# filled DEVICE: writes from MiB 8 on until there is no room, and says where that was.
filled() {
	local mib=8
	while dd if=/tmp/data of="$1" bs=1M count=1 seek="$mib" oflag=direct status=none 2>/tmp/refusal; do mib=$((mib + 1)); done
	echo "$mib"
}
# there DEVICE MIB NUMBER FILE: the file is there so many times.
there() {
	local n
	must cmp <(dd if="$1" bs=1M skip="$2" count="$3" iflag=direct status=none) <(for ((n = 0; n < $3; n++)); do cat "$4"; done)
}

for how in 'direct: true' 'direct: true, write: back, cache: {dirty-limit: 4MiB}'; do
	echo "== $how"
	tgtd_configure "s|path: disk, .*}|path: /tmp/small/disk, size: 256MiB, soft-threshold: 4MiB, $how}|"
	tgtd_start
	attach disk
	device=$(disk disk 0)
	must dd if=/tmp/head of="$device" bs=1M oflag=direct status=none
	full=$(filled "$device")
	echo "$full MiB fit: $(cat /tmp/refusal)"
	[[ $full -gt 12 && $full -le 28 ]] || fail "$full MiB were written to a volume on 24 MiB"
	must grep -q 'No space left' /tmp/refusal
	must grep -q 'space allocation' <(dmesg)

	there "$device" 0 1 <(head -c 1M /tmp/head)
	must dd if=/tmp/data of="$device" bs=1M count=1 seek=3 oflag=direct status=none
	there "$device" 3 1 /tmp/data
	must blkdiscard --length $((8 << 20)) "$device"
	must dd if=/tmp/data of="$device" bs=1M count=1 seek="$full" oflag=direct status=none
	must sg_sync "$device"
	there "$device" 8 $((full - 7)) /tmp/data

	logout disk
	must iscsiadm -m node -T "$BASE:disk" -o delete
	tgtd_stop
	rm /tmp/small/disk
	must /lab/lunar forget disk -c /tmp/tgtd.yaml
	dmesg --clear
done
umount /tmp/small
