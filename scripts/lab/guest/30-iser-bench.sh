# machines: rdma
# when: named
# seconds: 580
# iSER of tgtd, C tgt and LIO, and their TCP, in turns on one device: a line "sample"
# of each run, and of what tgtd's iSER did a line "counted". Arguments are the number
# of repeats, the seconds of each run and, with commas, the workloads and servers if not
# all of them.
. /lab/iser.bash
. /lab/others.bash
PORTAL=$RDMA_ADDRESS:3264
repeats=5 seconds=2 workloads='' wanted=''
[ -z "${ARGUMENTS:-}" ] || read -r repeats seconds workloads wanted <<<"$ARGUMENTS"
readonly MIB=64
servers=
for server in lunar-iser lunar-tcp tgt-iser tgt-tcp lio-iser lio-tcp; do
	[[ -n $wanted && ,$wanted, != *,$server,* ]] || servers+=" $server"
done
readonly counters='receives sends writes reads posts polls arms invalidations bounced_bytes'
declare -A device port=([lunar-iser]=3264 [lunar-tcp]=3264 [tgt-iser]=$TGT_ISER_PORT [tgt-tcp]=$TGT_PORT
	[lio-iser]=$LIO_ISER_PORT [lio-tcp]=$LIO_PORT)

# enter SERVER: logs in, and has its disk's queue give commands on as they come.
enter() {
	local lun=0 iface=default
	[ "${1%-*}" != tgt ] || lun=1
	[ "${1#*-}" != iser ] || iface=iser
	node "$1" "$RDMA_ADDRESS:${port[$1]}" "$iface"
	login "$1"
	device[$1]=$(disk "$1" "$lun")
	udevadm settle --timeout=30
	echo none >"/sys/block/${device[$1]##*/}/queue/scheduler"
}

# server_pid SERVER: 0 for LIO, which is no process.
server_pid() {
	case $1 in lunar-*) echo "$tgtd_pid" ;; tgt-*) echo "$tgt_pid" ;; *) echo 0 ;; esac
}

# look DISK PID: into $looked, time in µs, bytes moved, CPU time of the process and of
# the guest in ticks of 10 ms. It starts no process, which would be measured.
look() {
	local stat cpu spent=0
	read -r -a stat <"/sys/block/$1/stat"
	read -r -a cpu </proc/stat
	if [ "$2" != 0 ]; then
		IFS= read -r spent <"/proc/$2/stat"
		spent=(${spent##*) })
		spent=$((spent[11] + spent[12]))
	fi
	looked=("${EPOCHREALTIME/./}" $(((stat[2] + stat[6]) * 512)) "$spent" $((cpu[1] + cpu[2] + cpu[3] + cpu[6] + cpu[7])))
}

# counted SERVER: what its RDMA did so far.
counted() {
	local name
	for name in $counters; do printf '%s ' "$(rdma_status "$name")"; done
}

# run REPEAT SERVER WORKLOAD FIO'S-RW BYTES DEPTH
run() {
	local disk=${device[$2]##*/} pid fio before after counters_before='' bytes_before
	pid=$(server_pid "$2")
	[ "$2" != lunar-iser ] || counters_before=$(counted)
	look "$disk" "$pid" && bytes_before=${looked[1]}
	fio --filename="/dev/$disk" --direct=1 --ioengine=libaio --rw="$4" --bs="$5" --iodepth="$6" --size="${MIB}M" \
		--time_based --runtime=60 --gtod_reduce=1 --randrepeat=0 --norandommap --thread --name=load >/tmp/fio.log 2>&1 3>&- &
	fio=$!
	until look "$disk" "$pid" && ((looked[1] > bytes_before)); do
		kill -0 "$fio" 2>/dev/null || fail "fio ended: $(tail -n 3 /tmp/fio.log)"
		sleep 0.1
	done
	sleep 0.4
	look "$disk" "$pid" && before=("${looked[@]}")
	sleep "$seconds"
	look "$disk" "$pid" && after=("${looked[@]}")
	kill -INT "$fio"
	wait "$fio" || :
	! grep -q 'err=[^ ]*[1-9]' /tmp/fio.log || fail "$(tail -n 5 /tmp/fio.log)"
	echo "sample $1 $3 $2 $((after[0] - before[0])) $(((after[1] - before[1]) / $5)) $((after[2] - before[2])) $((after[3] - before[3]))"
	if [ "$2" = lunar-iser ]; then
		look "$disk" "$pid"
		echo "counted $3 $(((looked[1] - bytes_before) / $5)) $counters_before$(counted)"
	fi
	# What it still has to write back it would do while the next is measured.
	[[ $4 != *write ]] || must sync "/dev/$disk"
}

filled /dev/shm/lunar.img $MIB
cp /lab/conf/iser-bench.yaml /tmp/tgtd.yaml
chmod 600 /tmp/tgtd.yaml
tgtd_start
tgt_up $MIB
lio_up $MIB
for server in $servers; do enter "$server"; done
# Each is read in whole before: the cache then holds it.
for server in $servers; do must dd if="${device[$server]}" of=/dev/null bs=1M iflag=direct status=none; done
echo "counters $counters"
# udev would read the beginning of a disk that was written while the next server is
# measured.
udevadm control --stop-exec-queue
for ((repeat = 1; repeat <= repeats; repeat++)); do
	while read -r workload; do
		[[ -z $workloads || ,$workloads, = *,${workload%% *},* ]] || continue
		# shellcheck disable=SC2086
		for server in $servers; do run "$repeat" "$server" $workload; done
	done <<-'END'
		read-4k randread 4096 32
		write-4k randwrite 4096 32
		read-256k read 262144 8
		write-256k write 262144 8
	END
done
udevadm control --start-exec-queue
for server in $servers; do logout "$server"; done
equal "$(rdma_status failures)" 0
no_io_errors
tgtd_stop
others_down
