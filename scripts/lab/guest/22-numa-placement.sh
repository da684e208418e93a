# machines: numa2 numa4
# Where tgtd's memory is, page by page, and which CPUs its threads are pinned to.
. /lab/numa.bash

# total NODE KIND: bytes asked of the node, of mappings whose kind begins so.
total() { awk -v node="$1" -v kind="$2" '$1 == "total" && $2 == node && index($3, kind) == 1 { sum += $4 } END { print sum + 0 }' /tmp/placement; }

# about FOUND EXPECTED: nothing is missing, and what the server needs beside is little.
about() { (($1 >= $2 && $1 < $2 + $2 / 8)) || fail "found $1 bytes, expected $2 and at most an eighth more"; }

# placed KIND: each node has its part of the cache in mappings of that kind, and
# the buffers of its event threads.
placed() {
	local node buffers
	must /lab/numacheck "$tgtd_pid" | tee /tmp/placement
	for node in $NODES; do
		buffers=$((BUFFERS_PER_THREAD * $(cpu_numbers "$node" | wc -l)))
		if [ "$1" = anonymous ]; then
			about "$(total "$node" anonymous)" $((buffers + CACHE_PER_NODE))
		else
			about "$(total "$node" anonymous)" "$buffers"
			about "$(total "$node" "$1")" "$CACHE_PER_NODE"
		fi
	done
}

# pinned: each CPU has one event thread, which says the CPU's node, and no other
# thread is kept from a CPU of the node that it may run on.
pinned() {
	local expected lists node
	expected=$(for node in $NODES; do cpu_numbers "$node" | sed "s/$/ $node/"; done | sort)
	equal "$(status threads | fields cpu node | sort)" "$expected"
	equal "$(tgtd_threads | awk '$1 ~ /^event/ { print $2 }' | sort)" "$(awk '{ print $1 }' <<<"$expected")"
	lists=$(for node in $NODES; do cpus_of "$node"; done; cat /sys/devices/system/cpu/online)
	tgtd_threads | grep -v '^event' | while read -r _ allowed; do
		grep -qxF "$allowed" <<<"$lists" || fail "a thread may run on CPUs $allowed, expected those of a node or all: $(xargs <<<"$lists")"
	done
}

tgtd_configure
tgtd_start
placed /dev/shm/lunar/
pinned
tgtd_stop

tgtd_configure 's/@SEGMENT@/none/'
tgtd_start
placed anonymous
tgtd_stop
