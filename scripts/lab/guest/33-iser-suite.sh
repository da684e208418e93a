# machines: rdma
# when: named
# seconds: 840
# libiscsi's conformance suite over iSER, for scripts/conformance/iser.sh. Arguments are
# suites or tests; none are all. An iscsi-test-cu in LAB_FILES is used in place of Debian's.
. /lab/iser.bash
. /lab/suite.bash

suite_up
for test in $(suite_tests ${ARGUMENTS:-}); do
	((SECONDS < 720)) || { echo "no time for $test and what comes after it"; break; }
	examine "$test"
	cat $SAID
done
echo "the suite is over"
grep -o 'session closed.*reason=.*' /tmp/tgtd.log | sed 's/initiator.*reason/reason/' | sort | uniq -c || :
suite_down
