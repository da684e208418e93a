# kill -9 of tgtd while it holds acknowledged data that no backing file has:
# the next one takes them over from shared memory, and a stop in order writes
# them all.
attach disk
busy=$(disk disk 0)
held=$(disk disk 1)

# crashed DIRTY: the host's tgtd has taken over at least that many bytes.
crashed() {
	local outcome dirty warm
	read -r outcome dirty warm <<<"$(host attach)"
	echo "attached: $outcome, $dirty bytes dirty, $warm blocks"
	equal "$outcome" crashed
	[ "$dirty" -ge "$1" ] || fail "found $dirty bytes dirty, expected at least $1"
}

# until_written MIB DEVICE: waits until that much has been written to it.
until_written() {
	local tries found
	for ((tries = 0; tries < 600; tries++)); do
		found=$(awk '{ print int($7 / 2048) }' "/sys/block/${2##*/}/stat")
		[ "$found" -lt "$1" ] || return 0
		sleep 0.1
	done
	fail "found $found MiB written to $2 after a minute, expected $1"
}

# written FILE DEVICE: without a flush, so that what is acknowledged stays dirty.
written() { must dd if="$1" of="$2" bs=256k oflag=direct status=none; }

# unchanged FILE DEVICE: what the target has, not this guest's page cache.
unchanged() {
	blockdev --flushbufs "$2"
	must cmp "$1" "$2"
}

# Checked I/O goes on over two crashes.
verified "$busy" --bs=16k --size=32M --rate_iops=400 --verify_backlog=128 &
io=$!
for mib in 8 20; do
	until_written "$mib" "$busy"
	must kill -0 "$io"
	host kill
	sleep 0.5
	must kill -0 "$io"
	host start
	crashed 1
done
must wait "$io"
must sg_sync "$busy"

# Nothing that was acknowledged is lost, though nobody asked for a flush, and
# though the one that took it over is killed as well. (Above a quarter of the dirty
# limit, 6 MiB, some may have been written already.)
head -c 8M /dev/urandom >/tmp/held
written /tmp/held "$held"
for round in 1 2; do
	host kill
	host start
	crashed $((4 << 20))
done
unchanged /tmp/held "$held"

# A stop in order leaves all of it in the backing files.
head -c 2M /dev/urandom >/tmp/busy
written /tmp/busy "$busy"
blockdev --flushbufs "$busy"
busy_sum=$(sha256sum <"$busy")
host stop
equal "$(host sum held)" "$(sha256sum </tmp/held)"
equal "$(host sum busy)" "$busy_sum"

# The next start finds the cache warm.
host start
read -r outcome dirty warm <<<"$(host attach)"
echo "attached: $outcome, $dirty bytes dirty, $warm blocks"
equal "$outcome $dirty" "warm 0"
[ "$warm" -gt 0 ] || fail "found no block in the cache, expected some"
unchanged /tmp/held "$held"
no_io_errors
