# machines: network
# when: named
# seconds: 1700
# Three classes of readers behind a bottleneck that marks (RED): what each gets
# with plain DCTCP, with tgtd's governor and with the kernel's lunar_qtcp, for three kinds of
# receivers. A line "sample" of each run: who governs, receivers, Mbit/s of high, medium and
# low. Arguments are the seconds of each run, Mbit/s of the bottleneck (200), how many rounds (1),
# and, with commas, those who govern and the receivers if not all.
read -r -a given <<<"${ARGUMENTS:-}"
seconds=${given[0]:-20} rate=${given[1]:-200} rounds=${given[2]:-1}
governors=${given[3]:-plain,governor,kernel} kinds=${given[4]:-dctcp,cubic-ecn,no-ecn}
. /lab/network.bash

network_up
for ((round = 0; round < rounds; round++)); do
	for receivers in ${kinds//,/ }; do
		receivers_are "$receivers"
		for by in ${governors//,/ }; do
			server_is "$by"
			readers "$by" "$receivers"
			tgtd_stop
		done
	done
done
network_down
