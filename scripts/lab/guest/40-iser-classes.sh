# machines: rdma
# when: named
# seconds: 2400
# Three classes of readers over iSER behind a bottleneck: two Soft-RoCE devices with a cable,
# the target's side of which sends at most $rate kbit/s. A line "sample" of each run: who
# governs, and kbit/s of high, medium and low. An emulated machine carries some Mbit/s, so the
# bottleneck is below that, and commands are short. Arguments are the seconds of each run,
# kbit/s of the bottleneck, how many runs, and with commas those who govern if not both.
. /lab/iser.bash
seconds=120 rate=2000 rounds=1 wanted=plain,governor
[ -z "${ARGUMENTS:-}" ] || read -r seconds rate rounds wanted <<<"$ARGUMENTS"
readonly CLASSES="high medium low" NAMES=iqn.2026-01.lunar.lab
declare -A device

wire_up
PORTAL=$WIRE_TARGET:3260
must modprobe sch_htb
must tc qdisc add dev wiret root handle 1: htb default 1
must tc class add dev wiret parent 1: classid 1:1 htb rate "${rate}kbit" burst 6000 cburst 6000
must tc qdisc add dev wiret parent 1:1 handle 2: bfifo limit 1000000

# The rate of the link is that of data: packets of RDMA Writes have headers, too, and there are
# responses.
configured() {
	(
		umask 077
		cat <<YAML
server: {buffers-per-thread: 24MiB, threads: 1, iser: {remote-invalidation: false}}
portal-groups: {lab: {listen: ["$PORTAL"], listen-iser: ["$PORTAL"]}}
volumes: {disk: {type: ram, size: 32MiB, block-size: 4096}}
targets: {"$BASE:disk": {portal-groups: [lab], luns: {0: disk}}}
qos:
  window: 256
  network: {governor: $1, delay: $((rate < 656 ? 1000 : 655360 / rate))ms, links: {wiret: $((rate * 118 / 1000))KiB}}
  rules:
    - {name: high, initiators: ["$NAMES:high"], class: high}
    - {name: medium, initiators: ["$NAMES:medium"], class: medium}
    - {name: low, initiators: ["$NAMES:low"], class: low}
YAML
	) >/tmp/tgtd.yaml
}

# enter CLASS: logs in under a name of its own.
enter() {
	iface "$1" "$NAMES:$1"
	must iscsiadm -m iface -I "$1" -o update -n iface.transport_name -v iser
	node disk "$PORTAL" "$1"
	login disk -I "$1"
	device[$1]=$(disk disk 0 "$NAMES:$1")
	udevadm settle --timeout=60
	echo none >"/sys/block/${device[$1]##*/}/queue/scheduler"
	echo 120 >"/sys/block/${device[$1]##*/}/device/timeout"
}

# readers BY: all at a time, and what they got.
readers() {
	local class rates='' loads=()
	for class in $CLASSES; do
		fio --filename="${device[$class]}" --direct=1 --ioengine=libaio --rw=randread --bs=8k --iodepth=4 --size=32M --norandommap --thread \
			--time_based --ramp_time=20 --runtime="$seconds" --name="$class" --minimal --terse-version=3 >"/tmp/fio.$class" 2>&1 3>&- &
		loads+=($!)
	done
	sleep $((20 + seconds / 2))
	/lab/lunar qos explain "$NAMES:high" | sed -n '/^CONNECTION/,$p' | head -n 3
	for class in "${loads[@]}"; do wait "$class" || fail "a reader ended: $(tail -n 3 /tmp/fio.*)"; done
	for class in $CLASSES; do rates+=" $(awk -F';' '$1 == 3 && $5 == 0 { printf "%.0f", $7 * 1.024 * 8 }' "/tmp/fio.$class")"; done
	tc -s qdisc show dev wiret | tr '\n' ' '
	echo
	echo "sample $1$rates"
}

configured false
tgtd_start
for class in $CLASSES; do enter "$class"; done
for ((round = 0; round < rounds; round++)); do
	for by in plain governor; do
		[[ ,$wanted, = *,$by,* ]] || continue
		configured "$([ "$by" = governor ] && echo true || echo false)"
		must /lab/lunar apply /tmp/tgtd.yaml
		readers "$by"
	done
done
logout disk
tgtd_stop
wire_down
