# machines: rdma
# when: named
# seconds: 840
# libiscsi's conformance suite over iSER, for scripts/conformance/iser.sh: what it says
# of each of its suites, or of each test of one in which it crashes. Arguments are the
# suites; none are all but those of several paths. An iscsi-test-cu in LAB_FILES is used
# in place of Debian's.
. /lab/iser.bash

tgtd_configure
tgtd_start
url=iser://$PORTAL/$BASE:suite/0
suite=$(command -v /lab/iscsi-test-cu || command -v iscsi-test-cu)
# Debian's gives blocks of memory back to another list than they are from. It has other
# faults of that kind, for which it crashes now and then even so.
export LIBISCSI_CACHE_ALLOCATIONS=0

# asked NAME SECONDS: into /tmp/said, as far as it has come.
asked() { (cd /tmp && timeout -k 1 "$2" stdbuf -oL "$suite" -d -v -t "ALL.$1" "$url") >/tmp/said 2>&1; }

"$suite" -l 2>/dev/null | sed -n 's/^ALL\.//p' >/tmp/names
[ -n "${ARGUMENTS:-}" ] || ARGUMENTS=$(grep -vE '\.|Multipath' /tmp/names)
for name in $ARGUMENTS; do
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
grep -o 'session closed.*reason=.*' /tmp/tgtd.log | sed 's/initiator.*reason/reason/' | sort | uniq -c
no_io_errors
tgtd_stop
