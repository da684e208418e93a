# machines: rdma
# when: named
# seconds: 300
# A reservation over iSER: gold reads at a few depths alone, beside two who read as much as
# they can, and beside them with a rule. Of each party's run there is a line "promised".
# Arguments are the number of repeats and the seconds of each run.
. /lab/iser.bash
repeats=2 seconds=3
[ -z "${ARGUMENTS:-}" ] || read -r repeats seconds <<<"$ARGUMENTS"
readonly GOLD=iqn.2026-11.lunar.bench:gold MIB=32
declare -A device
PORTAL=$RDMA_ADDRESS:3264

# configured [RESERVATION]: what tgtd has from now on.
configured() {
	(
		umask 077
		cat /lab/conf/iser-promises.yaml
		[ -z "${1:-}" ] || echo "qos: {rules: [{name: gold, initiators: [\"$GOLD\"], reservation: $1}]}"
	) >/tmp/tgtd.yaml
}

# enter PARTY: logs in under a name of its own, over RDMA.
enter() {
	must iscsiadm -m iface -I "$1" -o new
	must iscsiadm -m iface -I "$1" -o update -n iface.transport_name -v iser
	must iscsiadm -m iface -I "$1" -o update -n iface.initiatorname -v "iqn.2026-11.lunar.bench:$1"
	node memory "$PORTAL" "$1"
	login memory -I "$1"
	device[$1]=$(disk memory 0 "iqn.2026-11.lunar.bench:$1")
	udevadm settle --timeout=30
	echo none >"/sys/block/${device[$1]##*/}/queue/scheduler"
}

# load PARTY DEPTH RUNTIME [BEFORE...]: gold is in the real-time class, so that it does not
# wait for a CPU itself.
load() {
	"${@:4}" fio --filename="${device[$1]}" --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth="$2" --size="${MIB}M" \
		--time_based --ramp_time=1 --runtime="$3" --norandommap --thread --name="$1" --minimal --terse-version=3 >"/tmp/fio.$1" 2>&1 3>&-
}

# report REPEAT CASE PARTY: fio's terse line has the rate and percentiles.
report() {
	awk -F';' -v "head=promised $1 $2 $3" '$1 == 3 && $5 == 0 {
		for (n = 9; n < 45; n++) {
			split($n, part, "=")
			if (part[1] == "50.000000%") p50 = part[2]
			if (part[1] == "99.000000%") p99 = part[2]
		}
		print head, $8, p50, p99, $7 * 1024
		found = 1
	} END { exit !found }' "/tmp/fio.$3" || fail "fio of $3: $(tail -n 3 "/tmp/fio.$3")"
}

# run REPEAT CASE DEPTH NEIGHBOURS
run() {
	local party hogs=()
	if [ "$4" = hogs ]; then
		for party in hog1 hog2; do load "$party" 32 $((seconds + 2)) & hogs+=($!); done
		sleep 1
	fi
	load gold "$3" "$seconds" chrt --fifo 3
	for party in "${hogs[@]}"; do wait "$party" || :; done
	report "$1" "$2-$3" gold
	[ "$4" != hogs ] || for party in hog1 hog2; do report "$1" "$2-$3" "$party"; done
}

# part DEPTH: of what gold has just had, about as much as 20,000 are on the host.
part() { awk -F';' -v "tenths=$((10 * ($1 == 1 ? 6 : 3)))" '$1 == 3 { printf "%d", $8 * tenths / 100 }' /tmp/fio.gold; }

configured
tgtd_start
for party in gold hog1 hog2; do enter "$party"; done
must dd if="${device[gold]}" of=/dev/null bs=1M iflag=direct status=none
for ((repeat = 1; repeat <= repeats; repeat++)); do
	for depth in 1 4; do
		run "$repeat" alone "$depth" nobody
		reserved=$(part "$depth")
		run "$repeat" bare "$depth" hogs
		configured "$reserved"
		must /lab/lunar apply --yes /tmp/tgtd.yaml
		echo "reserved $repeat $depth $reserved"
		run "$repeat" ruled "$depth" hogs
		configured
		must /lab/lunar apply --yes /tmp/tgtd.yaml
	done
done
for party in gold hog1 hog2; do logout memory -I "$party"; done
no_io_errors
tgtd_stop
