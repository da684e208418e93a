# What scenarios over iSER use beside rdma.bash: tgtd in this guest.
. /lab/rdma.bash
tgtd_pid=
PORTAL=$RDMA_ADDRESS:3260

# tgtd_configure [SED-EXPRESSION]: the configuration, with a change.
tgtd_configure() { (umask 077 && sed -e "${1:-}" /lab/conf/iser.yaml >/tmp/tgtd.yaml); }

# tgtd_start returns when it accepts connections.
tgtd_start() {
	local tries
	/lab/tgtd version >/dev/null || fail "the host's tgtd does not run with this guest's C library"
	/lab/tgtd serve -c /tmp/tgtd.yaml >>/tmp/tgtd.log 2>&1 3>&- &
	tgtd_pid=$!
	for ((tries = 0; tries < 300; tries++)); do
		(exec 3<>"/dev/tcp/${PORTAL/://}") 2>/dev/null && return
		kill -0 "$tgtd_pid" 2>/dev/null || fail "tgtd ended at its start: $(tail -n 3 /tmp/tgtd.log)"
		sleep 0.2
	done
	fail "tgtd does not listen after a minute"
}

# tgtd_kill is a crash.
tgtd_kill() {
	kill -9 "$tgtd_pid"
	wait "$tgtd_pid" 2>/dev/null || :
	tgtd_pid=
}

# tgtd_stop: ending with a non-zero code is a fault.
tgtd_stop() {
	local status=0
	kill -TERM "$tgtd_pid"
	wait "$tgtd_pid" || status=$?
	tgtd_pid=
	equal "tgtd ended with status $status" "tgtd ended with status 0"
	! grep -E '^(panic|fatal error)' /tmp/tgtd.log || fail "tgtd panicked"
}

# rdma_status NAME: a counter of the device, as tgtd has it.
rdma_status() { /lab/lunar status --json | tr -d ' \n' | sed -n "s/.*\"devices\":\[{[^]]*\"$1\":\([0-9]*\).*/\1/p"; }

rdma_up
rm -rf /tmp/tgtd.log /tmp/tgtd.yaml /dev/shm/lunar /var/lib/lunar
dmesg -C
