# machines: network
# when: named
# seconds: 580
# Three classes of readers behind a bottleneck of 200 Mbit/s that marks (RED): what each gets
# with plain DCTCP, with tgtd's governor and with the kernel's lunar_qtcp, for three kinds of
# receivers. A line "sample" of each run: who governs, receivers, Mbit/s of high, medium and
# low. Arguments are the seconds of each run and, with commas, those who govern if not all.
. /lab/network.bash
seconds=20 wanted=''
[ -z "${ARGUMENTS:-}" ] || read -r seconds wanted <<<"$ARGUMENTS"

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
