# tgtd in this guest: one process at a time, with the configuration in /tmp/tgtd.yaml, which
# listens at $PORTAL.
tgtd_pid=
rm -rf /tmp/tgtd.log /tmp/tgtd.yaml /dev/shm/lunar /var/lib/lunar

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
