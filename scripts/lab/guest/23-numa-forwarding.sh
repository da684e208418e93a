# machines: numa2 numa4
# Reads from 64 KiB on are handed to the node that has their data in its cache,
# smaller ones are served where they arrive, and the data are right either way.
. /lab/numa.bash
readonly LARGE=$((256 << 10)) SMALL=$((4 << 10)) START=$((64 << 20)) REGION=$((16 << 20))

# A session's connection is served on the node of the network device that it
# came in through. disk_at NODE: the disk of that session.
disk_at() {
	local connection session
	for connection in /sys/class/iscsi_connection/connection*; do
		[ "$(cat "$connection/persistent_address")" = "10.1.$1.1" ] || continue
		session=${connection##*connection}
		ls "/sys/class/iscsi_session/session${session%:*}"/device/target*/*:0/block | sed 's|^|/dev/|'
	done
}

# read_on NODE DISK HOME: reads data of a node by the disk of another, large and
# small ones, whose number tells the node. Four consecutive blocks of 256 KiB lie on one
# node, the next four on the next, and those of the first volume begin on node 0;
# each disk has regions of its own.
read_on() {
	local at=$((START + 2 * $3 * REGION + $1 * (1 << 20)))
	must dd if="$2" of=/dev/null iflag=direct status=none bs=$LARGE skip=$((at / LARGE)) count=$(($1 + 1))
	at=$((at + REGION))
	must dd if="$2" of=/dev/null iflag=direct status=none bs=$SMALL skip=$((at / SMALL)) count=$(($1 + 1))
}

# counters: a line "NODE LOCAL REMOTE FORWARDED" per node, in bytes.
counters() { status nodes | fields node local_bytes remote_bytes forwarded_bytes; }

# grown BEFORE AFTER: by how much.
grown() {
	paste -d ' ' <(echo "$1") <(echo "$2") |
		awk '{ print "node " $1 ": local " $6 - $2 ", remote " $7 - $3 ", forwarded " $8 - $4 }'
}

# expected HOME WHAT: the same after read_on of every node by the disk of that
# node. Misses are served on the node of the data; hits leave from its memory, but
# the request stays where it is.
expected() {
	local node n local_bytes remote forwarded
	for node in $NODES; do
		local_bytes=0 remote=0 forwarded=0
		[ "$2" = hits ] && [ "$node" != "$1" ] || local_bytes=$(((node + 1) * LARGE))
		if [ "$node" = "$1" ]; then
			local_bytes=$((local_bytes + (node + 1) * SMALL))
			for n in $NODES; do
				[ "$n" = "$1" ] && continue
				remote=$((remote + (n + 1) * SMALL))
				forwarded=$((forwarded + (n + 1) * LARGE))
			done
		fi
		echo "node $node: local $local_bytes, remote $remote, forwarded $forwarded"
	done
}

tgtd_configure
tgtd_start
for node in $NODES; do node disk "$(portal_of "$node")"; done
login disk
disk disk 0 >/dev/null
udevadm settle --timeout=30 || udevadm settle --timeout=30 # udevd may drop one question, "Broken pipe"
last=${NODES##*$'\n'}

for what in misses hits; do
	for home in $NODES; do
		disk=$(disk_at "$home")
		before=$(counters)
		for node in $NODES; do read_on "$node" "$disk" "$home"; done
		found=$(grown "$before" "$(counters)")
		echo "$found"
		equal "$found" "$(expected "$home" "$what")"
	done
done

# What one node writes, another reads, and the backing file has in the end.
verified "$(disk_at "$last")" --bs=256k --size=16M \
	--name=mixed --stonewall --bsrange=4k-256k --size=8M --offset=16M
head -c 24M "$(disk_at "$last")" >/tmp/written
must cmp -n 24M /tmp/written "$(disk_at 0)"
no_io_errors
logout disk
tgtd_stop
must cmp -n 24M /tmp/written /var/lib/lunar/disk
rm /tmp/written
