# machines: rdma
# when: named
# seconds: 2400
# Three classes of readers over iSER behind a bottleneck: two Soft-RoCE devices with a cable,
# the target's side of which sends at most $rate kbit/s. A line "sample" of each run: who
# governs, and kbit/s of high, medium and low. Arguments are the seconds of each run, kbit/s of
# the bottleneck, how many runs, and with commas those who govern if not both.
#
# An emulated machine carries little, and far less beside other work: the bottleneck is below
# that, and commands are short. Without remote invalidation the initiator's rxe has one or two
# commands of a connection under way, whatever waits: a Local Invalidate waits for all before it.
# With more, those of three connections wait for longer than rxe does before it sends again
# (between 0.7 and 1.7 s), and the link carries the same again and again. Lines "backlog" say what
# waits in the bottleneck during a run: where it is nothing though nobody governs, the machine is
# the bottleneck, and the shares say nothing.
. /lab/iser.bash
seconds=150 rate=400 rounds=1 wanted=plain,governor
[ -z "${ARGUMENTS:-}" ] || read -r seconds rate rounds wanted <<<"$ARGUMENTS"
readonly RAMP=40 CLASSES="high medium low" NAMES=iqn.2026-01.lunar.lab
declare -A device

wire_up
PORTAL=$WIRE_TARGET:3260
must modprobe sch_htb
must tc qdisc add dev wiret root handle 1: htb default 1
must tc class add dev wiret parent 1: classid 1:1 htb rate "${rate}kbit" burst 6000 cburst 6000
must tc qdisc add dev wiret parent 1:1 handle 2: bfifo limit 1000000

# The rate of the link is that of data: 8192 bytes of them are 8536 with headers, the response and
# an acknowledgement. Four hundredths less keep the bottleneck's queue short.
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
  network: {governor: $1, delay: $((rate < 656 ? 1000 : 655360 / rate))ms, links: {wiret: $((rate * 113 / 1000))KiB}}
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
			--time_based --ramp_time=$RAMP --runtime="$seconds" --name="$class" --minimal --terse-version=3 >"/tmp/fio.$class" 2>&1 3>&- &
		loads+=($!)
	done
	sleep $((RAMP + seconds / 4))
	for class in $CLASSES; do
		tc -s qdisc show dev wiret parent 1:1 | grep backlog
		/lab/lunar qos explain "$NAMES:$class" | sed -n '/^CONNECTION/,$p' | sed -n 2p
	done
	for class in "${loads[@]}"; do wait "$class" || fail "a reader ended: $(tail -n 3 /tmp/fio.*)"; done
	for class in $CLASSES; do rates+=" $(awk -F';' '$1 == 3 && $5 == 0 { printf "%.1f", $6 * 8192 / $9 }' "/tmp/fio.$class")"; done
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
