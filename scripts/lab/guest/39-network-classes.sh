# machines: network
# when: named
# seconds: 580
# Three classes of readers behind a bottleneck that marks (RED): what each gets
# with plain DCTCP, with tgtd's governor and with the kernel's lunar_qtcp, for three kinds of
# receivers. A line "sample" of each run: who governs, receivers, Mbit/s of high, medium and
# low. Arguments are the seconds of each run, Mbit/s of the bottleneck (200) and, with commas,
# those who govern if not all.
seconds=20 wanted='' rate=200
[ -z "${ARGUMENTS:-}" ] || read -r seconds rate wanted <<<"$ARGUMENTS"
. /lab/network.bash

network_up
for by in plain governor kernel; do
	[[ -z $wanted || ,$wanted, = *,$by,* ]] || continue
	for receivers in dctcp cubic-ecn no-ecn; do
		receivers_are "$receivers"
		server_is "$by"
		readers "$by" "$receivers"
		tgtd_stop
	done
done
network_down
