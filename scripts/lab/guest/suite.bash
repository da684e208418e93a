# What scenarios with libiscsi's conformance suite over iSER use beside iser.bash. Its
# version 1.19 (Debian 12) goes on using a connection's memory after it has given it
# back, so that every second process crashes, and takes a second without an answer for a
# failure (docs/iser.md). gentle.so, of scripts/conformance/gentle.c, makes both harmless,
# where the host has a compiler for it; each test has a process of its own all the same.
readonly ATTEMPTS=3 PATIENCE=100 SAID=/tmp/said

# The volume is in memory, so that commands are short; a NOP-In costs the client a
# descriptor for good; it registers 64 MiB for each login, which huge pages make cheap.
suite_up() {
	tgtd_configure 's|path: suite|path: /dev/shm/lunar-suite|; s|nop: .*|nop: {interval: 0s}|'
	tgtd_start
	suite_program=$(command -v /lab/iscsi-test-cu || command -v iscsi-test-cu)
	suite_preload=
	[ ! -e /lab/gentle.so ] || suite_preload=/lab/gentle.so
	export LIBISCSI_CACHE_ALLOCATIONS=0 MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TOP_PAD_=67108864
}

# suite_down: the volume is gone as well.
suite_down() {
	no_io_errors
	tgtd_stop
	rm -f /dev/shm/lunar-suite
}

# suite_tests [SUITE|TEST]...: those, or all but those of several paths.
suite_tests() {
	"$suite_program" -l 2>/dev/null | sed -n 's/^ALL\.\(.*\..*\)/\1/p' | grep -v '^Multipath' |
		awk -v wanted=" $* " '{ suite = $0; sub(/\..*/, "", suite)
			if (wanted ~ /^ *$/ || index(wanted, " " $0 " ") || index(wanted, " " suite " ")) print }'
}

# asked TEST: what the suite says, into $SAID, as far as it has come.
asked() {
	(cd /tmp && LD_PRELOAD=$suite_preload timeout -k 1 "$PATIENCE" stdbuf -oL "$suite_program" -d -v -t "ALL.$1" \
		"iser://$PORTAL/$BASE:suite/0") >$SAID 2>&1
}

# crash_place: where the client has crashed, as far as the kernel tells it.
crash_place() { dmesg | sed -n 's/.*iscsi-test-cu.*segfault at \([^ ]*\) .* in \(.*\)/ at \1 in \2/p' | tail -n 1; }

# examine TEST: asks until there is a verdict, or ATTEMPTS times, and prints a line of
# each attempt. A test that takes too long is not tried again.
examine() {
	local attempt status began
	for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
		status=0 began=$SECONDS
		dmesg -C
		asked "$1" || status=$?
		echo "asked $1: attempt $attempt, status $status in $((SECONDS - began)) s$(crash_place)"
		! grep -qE '(^|\.\.\.)(passed|FAILED)' $SAID && ((status != 124)) || break
		((attempt == ATTEMPTS)) || sed 's/^/: /' $SAID
	done
}
