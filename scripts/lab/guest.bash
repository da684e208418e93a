# The guest seen from the host: a QEMU process and a line channel to its agent.
# Uses $image, $logs, $runtime and $boot_seconds from run.sh.
#
# A scenario runs on one or several machines. The initiator logs in to tgtd on
# the host, or as cluster to servers that whoever runs the lab has. On a numaN tgtd runs as well; it has N nodes, each with memory, CPUs
# and a network device of its own. On rdma tgtd and the initiator share a Soft-RoCE
# device that needs no network. On network tgtd, a bottleneck and readers have network
# namespaces of their own. On systemd that is the guest's init, and the packages are
# to be installed.
#
# Lines from the guest: "ready"; "out TEXT" (a scenario's output); "log TEXT"
# (of a tgtd in the guest); "host WORD" (a request to the host, answered by one
# line "ok TEXT" or "failed TEXT"); "done STATUS". Lines to the guest: "run SCENARIO
# PORT SECONDS [ARGUMENT...]", and "off".

readonly machines='initiator cluster rdma network systemd numa2 numa4'
guest_pid=
guest_machine=

# target_here MACHINE: whether the lab runs tgtd for it on the host.
target_here() { [ "$1" = initiator ]; }

# target_inside MACHINE: whether tgtd runs there.
target_inside() { ! target_here "$1" && [ "$1" != cluster ]; }

# machine_initiator, machine_rdma, machine_numa NODES: the machine's hardware, into $hardware.
machine_initiator() {
	hardware=(-smp 2 -m 1G -netdev user,id=net0 -device virtio-net-pci,netdev=net0,romfile=)
}

# The CPUs of a node are not consecutive where there are more CPUs than nodes.
machine_numa() {
	local node cpu
	hardware=(-smp 4,sockets=4 -m 1536M)
	for ((node = 0; node < $1; node++)); do
		hardware+=(-object "memory-backend-ram,id=memory$node,size=$((1536 / $1))M"
			-numa "node,nodeid=$node,memdev=memory$node"
			-device "pxb,id=bus$node,bus_nr=$((32 * (node + 1))),bus=pci.0,addr=$((16 + node)),numa_node=$node"
			-netdev "user,id=net$node" -device "virtio-net-pci,netdev=net$node,romfile=,bus=bus$node,addr=1")
	done
	for ((cpu = 0; cpu < 4; cpu++)); do hardware+=(-numa "cpu,node-id=$((cpu % $1)),socket-id=$cpu"); done
}

machine_cluster() { machine_initiator; }
machine_rdma() { machine_initiator; }
machine_systemd() { machine_initiator; }
machine_network() { machine_initiator; }

# guest_files MACHINE: the disk with what the guest runs.
guest_files() {
	local more=() file
	target_inside "$1" && more=(-C "$lab" conf -C "$runtime" tgtd lunar numacheck)
	[ "$1" != network ] || more+=(tgtload)
	for file in native.test gentle.so; do
		[ "$1" != rdma ] || [ ! -e "$runtime/$file" ] || more+=("$file")
	done
	[ "$1" != systemd ] || more+=(-C "$runtime/packages" .)
	[ -z "${LAB_FILES:-}" ] || more+=(-C "$(realpath "$LAB_FILES")" .)
	tar -chf "$runtime/guest.tar" -C "$lab/guest" . -C "$root/scripts" fio "${more[@]}"
	truncate -s %1M "$runtime/guest.tar"
}

# guest_command MODE MACHINE: the command that boots, into $qemu. KVM is not used
# even where it exists: nested, it may hang a stock kernel before its first line.
guest_command() {
	local hardware
	guest_files "$2"
	"machine_${2%%[0-9]*}" "${2##*[a-z]}"
	qemu=(qemu-system-x86_64 -accel tcg,thread=multi -cpu max
		-nodefaults -display none -no-reboot
		-kernel "$image/vmlinuz" -initrd "$image/initrd.img"
		-append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable net.ifnames=0 lab=$1 lab.port=$port lab.init=$2"
		-drive "file=$image/root.img,format=raw,if=none,id=root,snapshot=on,cache=unsafe"
		-device virtio-blk-pci,drive=root,bus=pci.0
		-drive "file=$runtime/guest.tar,format=raw,if=none,id=files,readonly=on"
		-device virtio-blk-pci,drive=files,bus=pci.0
		-object rng-random,id=rng0,filename=/dev/urandom -device virtio-rng-pci,rng=rng0,bus=pci.0
		"${hardware[@]}")
}

# guest_start MACHINE boots in the background with the channel as descriptors 5
# and 6.
guest_start() {
	rm -f "$runtime/channel".*
	mkfifo "$runtime/channel.in" "$runtime/channel.out"
	exec 5<>"$runtime/channel.in" 6<>"$runtime/channel.out"
	guest_command scenarios "$1"
	"${qemu[@]}" -serial "file:$logs/console$lane.log" \
		-device virtio-serial-pci,bus=pci.0 -chardev "pipe,id=lab,path=$runtime/channel" \
		-device virtserialport,chardev=lab,name=lab >"$logs/qemu$lane.log" 2>&1 &
	guest_pid=$! guest_machine=$1
	guest_line "$boot_seconds" && [ "$line" = ready ]
}

# guest_line SECONDS: reads the next line into $line; fails when the time is
# over, the guest has ended, or tgtd has ended by itself (what the guest does
# then is wait for it).
guest_line() {
	local until=$((SECONDS + $1)) part
	line=
	while ((SECONDS < until)); do
		IFS= read -r -t 1 -u 6 part && { line+=$part; return; }
		line+=$part # of a line whose rest has not come within the second
		kill -0 "$guest_pid" 2>/dev/null || { line="the guest ended"; return 1; }
		[ -z "$target_pid" ] || target_runs || { line="tgtd ended by itself"; return 1; }
	done
	line="no answer from the guest within $1 s"
	return 1
}

guest_tell() { printf '%s\n' "$*" >&5; }

# guest_run SCENARIO SECONDS: runs it in the guest and serves its requests
# until it is done; its output goes to $dir/guest.log.
# Returns the scenario's status, 200 if the guest is of no more use.
guest_run() {
	local until=$((SECONDS + $2)) answer words
	guest_tell "run $1 $port $(seconds_of "$1") ${LAB_ARGUMENTS:-}"
	while guest_line "$((until - SECONDS))"; do
		case $line in
		out\ *) printf '%s\n' "${line#out }" >>"$dir/guest.log" ;;
		log\ *) printf '%s\n' "${line#log }" >>"$dir/tgtd.log" ;;
		host\ *)
			printf '@@ %s\n' "$line" >>"$dir/guest.log"
			read -r -a words <<<"${line#host }"
			if target_request "${words[@]}" >"$runtime/answer"; then answer=ok; else answer=failed; fi
			guest_tell "$answer $(head -n 1 "$runtime/answer")"
			;;
		done\ *) return "${line#done }" ;;
		esac
	done
	printf '@@ %s\n' "$line" >>"$dir/guest.log"
	return 200
}

guest_end() {
	[ -n "$guest_pid" ] || return 0
	kill -9 "$guest_pid" 2>/dev/null || :
	wait "$guest_pid" 2>/dev/null || :
	guest_pid=
}
