# Two initiators at once, each with checked I/O on its half of one LUN, while
# both also see what the other wrote.
two_initiators
login disk -p "$PORTAL"
equal "$(sessions_of disk | wc -l)" 2
mine=$(disk disk 0 "$INITIATOR")
other=$(disk disk 0 "$SECOND")
must test "$mine" != "$other"

verified "$mine" --bs=16k --size=8M --offset=0 &
first=$!
verified "$other" --bs=16k --size=8M --offset=64M &
second=$!
must wait "$first"
must wait "$second"

must dd if=/dev/urandom of="$mine" bs=1M seek=128 count=2 oflag=direct status=none
must cmp <(dd if="$mine" bs=1M skip=128 count=2 iflag=direct status=none) \
	<(dd if="$other" bs=1M skip=128 count=2 iflag=direct status=none)

# One leaves; the other is not disturbed.
logout disk -p "$PORTAL" -I second
verified "$mine" --bs=16k --size=4M
no_io_errors
