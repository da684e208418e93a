# The target under test on the host: one tgtd process at a time.
# Uses $tgtd, $lunar, $dir (the scenario's directory), $port, $runtime and $segment from
# run.sh.

target_pid=

# target_configure SCENARIO: writes its configuration, with an empty store.
target_configure() {
	local template=$lab/conf/$1.yaml
	[ -f "$template" ] || template=$lab/conf/default.yaml
	rm -rf "$dir/store" "$runtime/state" "$segment"
	mkdir -p "$dir/store"
	mkdir -m 700 "$segment"
	target_write "$template"
}

# target_write TEMPLATE: it may hold secrets, so only its owner may read it.
target_write() {
	(umask 077 && sed -e "s|@STORE@|$dir/store|g" -e "s|@PORT@|$port|g" -e "s|@SEGMENT@|$segment|g" "$1" >"$dir/tgtd.yaml")
}

# target_apply NAME: puts another configuration into force.
target_apply() {
	target_write "$lab/conf/$1.yaml" && "$lunar" apply --yes --allow-shrink disk "$dir/tgtd.yaml" --state-dir "$runtime/state" 2>&1 | tee -a "$dir/tgtd.log"
	return "${PIPESTATUS[0]}"
}

target_listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

# target_start returns when the target accepts connections.
target_start() {
	local tries
	"$tgtd" serve -c "$dir/tgtd.yaml" --state-dir "$runtime/state" >>"$dir/tgtd.log" 2>&1 5>&- 6>&- &
	target_pid=$!
	for ((tries = 0; tries < 600; tries++)); do
		target_listens && return
		target_runs || { target_pid=; echo "tgtd ended at its start"; return 1; }
		sleep 0.1
	done
	echo "tgtd does not listen on 127.0.0.1:$port after a minute"
	return 1
}

target_runs() { [ -n "$target_pid" ] && kill -0 "$target_pid" 2>/dev/null; }

# target_kill is the crash of the recovery scenarios. It fails if tgtd had
# ended by itself before.
target_kill() {
	target_runs || { echo "tgtd had ended before it was killed"; return 1; }
	kill -9 "$target_pid"
	wait "$target_pid" 2>/dev/null || :
	target_pid=
}

# target_stop asks tgtd to end; ending late or with a non-zero code is a fault.
target_stop() {
	local tries status=0
	[ -n "$target_pid" ] || return 0
	kill -TERM "$target_pid" 2>/dev/null || :
	for ((tries = 0; tries < 300; tries++)); do
		target_runs || break
		sleep 0.1
	done
	if target_runs; then
		target_kill
		echo "tgtd still ran 30 s after SIGTERM"
		return 1
	fi
	wait "$target_pid" || status=$?
	target_pid=
	[ "$status" = 0 ] || { echo "tgtd ended with status $status, expected 0"; return 1; }
}

# target_connections prints how many connections tgtd holds open.
target_connections() { ss -Htn state established "sport = :$port" | wc -l; }

# target_attach prints what became of the cache of the tgtd before: outcome,
# bytes that were dirty, blocks.
target_attach() {
	"$lunar" status --json --state-dir "$runtime/state" | tr -d ' \n' |
		sed -n 's/.*"attach":{\([^}]*\).*/\1/p' | tr , '\n' |
		awk -F: '{ gsub(/"/, "") } { found[$1] = $2 }
			END { if (!NR) exit 1; print found["outcome"], found["dirty_bytes"], found["warm_blocks"] }'
}

# target_request WORD [ARGUMENT...]: what a scenario in the guest may ask for.
target_request() {
	case $1 in
	kill) target_kill ;;
	start) target_start ;;
	stop) target_stop ;;
	connections) target_connections ;;
	attach) target_attach ;;
	apply) target_apply "$2" ;;
	drain) "$lunar" drain "$2" --to "$3" --state-dir "$runtime/state" ;;
	sum) sha256sum <"$dir/store/$2" ;;
	*) echo "unknown request '$1'" && return 1 ;;
	esac
}
