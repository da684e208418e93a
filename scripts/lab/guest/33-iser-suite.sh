# machines: rdma
# when: named
# seconds: 840
# libiscsi's conformance suite over iSER, for scripts/conformance/iser.sh: what it says
# of each of its suites, or of each test of one in which it crashes. An iscsi-test-cu
# in LAB_FILES is used in place of Debian's.
. /lab/iser.bash

tgtd_configure
tgtd_start
url=iser://$PORTAL/$BASE:suite/0
suite=$(command -v /lab/iscsi-test-cu || command -v iscsi-test-cu)
# Debian's gives blocks of memory back to another list than they are from.
export LIBISCSI_CACHE_ALLOCATIONS=0

# asked NAME SECONDS: into /tmp/said.
asked() { (cd /tmp && timeout -k 1 "$2" "$suite" -d -v -t "$1" "$url") >/tmp/said 2>&1; }

"$suite" -l 2>/dev/null | grep '^ALL\.' >/tmp/names
for name in $(grep -vE '\..*\.|Multipath' /tmp/names); do
	began=$SECONDS status=0
	asked "$name" 60 || status=$?
	echo "asked $name: status $status in $((SECONDS - began)) s"
	if ((status < 124)); then
		cat /tmp/said
		continue
	fi
	for test in $(grep "^$name\\." /tmp/names); do
		status=0
		asked "$test" 20 || status=$?
		cat /tmp/said
		((status < 124)) || echo "asked $test: status $status"
	done
done
echo "the suite is over"
/lab/tgtd status --json >/dev/null
grep -o 'session closed.*reason=.*' /tmp/tgtd.log | sed 's/initiator.*reason/reason/' | sort | uniq -c
no_io_errors
tgtd_stop
