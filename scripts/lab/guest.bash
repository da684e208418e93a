# The guest seen from the host: a QEMU process and a line channel to its agent.
# Uses $image, $logs, $runtime and $deadline from run.sh.
#
# Lines from the guest: "ready"; "out TEXT" (a scenario's output); "host WORD"
# (a request to the host, answered by one line "ok TEXT" or "failed TEXT");
# "done STATUS". Lines to the guest: "run SCENARIO PORT", and "off".

guest_pid=

# guest_command MODE: the command that boots, into $qemu. KVM is not used even
# where it exists: nested, it may hang a stock kernel before its first line.
guest_command() {
	tar -C "$lab/guest" -cf "$runtime/guest.tar" .
	truncate -s %1M "$runtime/guest.tar"
	qemu=(qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1G
		-nodefaults -display none -no-reboot
		-kernel "$image/vmlinuz" -initrd "$image/initrd.img"
		-append "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0 lab=$1 lab.port=$port"
		-drive "file=$image/root.img,format=raw,if=virtio,snapshot=on,cache=unsafe"
		-drive "file=$runtime/guest.tar,format=raw,if=virtio,readonly=on"
		-netdev user,id=net0 -device virtio-net-pci,netdev=net0,romfile=
		-object rng-random,id=rng0,filename=/dev/urandom -device virtio-rng-pci,rng=rng0)
}

# guest_start boots in the background with the channel as descriptors 5 and 6.
guest_start() {
	rm -f "$runtime/channel".*
	mkfifo "$runtime/channel.in" "$runtime/channel.out"
	exec 5<>"$runtime/channel.in" 6<>"$runtime/channel.out"
	guest_command scenarios
	"${qemu[@]}" -serial "file:$logs/console.log" \
		-device virtio-serial-pci -chardev "pipe,id=lab,path=$runtime/channel" \
		-device virtserialport,chardev=lab,name=lab >"$logs/qemu.log" 2>&1 &
	guest_pid=$!
	guest_line "$((deadline - SECONDS))" && [ "$line" = ready ]
}

# guest_line SECONDS: reads the next line into $line; fails when the time is
# over, the guest has ended, or tgtd has ended by itself (what the guest does
# then is wait for it).
guest_line() {
	local until=$((SECONDS + $1))
	while ((SECONDS < until)); do
		IFS= read -r -t 1 -u 6 line && return
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
	local until=$((SECONDS + $2)) answer
	guest_tell "run $1 $port"
	while guest_line "$((until - SECONDS))"; do
		case $line in
		out\ *) printf '%s\n' "${line#out }" >>"$dir/guest.log" ;;
		host\ *)
			printf '@@ %s\n' "$line" >>"$dir/guest.log"
			if target_request "${line#host }" >"$runtime/answer"; then answer=ok; else answer=failed; fi
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
