# A discard is accepted, the discarded range reads as zeros and its
# neighbours keep their data.
attach disk
device=$(disk disk 0)
name=${device##*/}
must test "$(cat "/sys/block/$name/queue/discard_max_bytes")" -gt 0

must dd if=/dev/urandom of=/tmp/random bs=1M count=12 status=none
must dd if=/tmp/random of="$device" bs=1M oflag=direct status=none
must blkdiscard --offset 4M --length 4M "$device"
dd if="$device" of=/tmp/read bs=1M count=12 iflag=direct status=none
must cmp -n $((4 << 20)) /tmp/read /tmp/random
must cmp -n $((4 << 20)) -i $((4 << 20)):0 /tmp/read /dev/zero
must cmp -n $((4 << 20)) -i $((8 << 20)) /tmp/read /tmp/random

must blkdiscard --zeroout --offset 8M --length 2M "$device"
must cmp -n $((2 << 20)) <(dd if="$device" bs=1M skip=8 count=2 iflag=direct status=none) /dev/zero
no_io_errors
