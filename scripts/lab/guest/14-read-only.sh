# A read-only LU says so and refuses writes that ignore it; read-only for one
# initiator is not read-only for another.
read_only() { test "$(cat "/sys/block/${1##*/}/ro")" = 1; }

attach several
device=$(disk several 3)
must read_only "$device"
must dd if="$device" of=/dev/null bs=64k count=16 iflag=direct status=none
refused dd if=/dev/zero of="$device" bs=4k count=1 oflag=direct status=none

# Past the kernel's own check: the target must refuse, with DATA PROTECT.
generic=/dev/$(basename "/sys/block/${device##*/}/device/scsi_generic/"*)
head -c 512 /dev/urandom >/tmp/block
answer=$(sg_raw -s 512 -i /tmp/block "$generic" 2a 00 00 00 00 00 00 00 01 00 2>&1) &&
	fail "the target wrote to a read-only LU"
must grep -i 'data protect' <<<"$answer"
must cmp -n 512 <(dd if="$device" bs=512 count=1 iflag=direct status=none) /dev/zero

two_initiators
login shared -p "$PORTAL"
must read_only "$(disk shared 0 "$SECOND")"
mine=$(disk shared 0 "$INITIATOR")
refused read_only "$mine"
must dd if=/tmp/block of="$mine" bs=512 oflag=direct status=none
