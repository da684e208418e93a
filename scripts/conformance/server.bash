# server.bash: starts and stops the tgtd under test; sourced by the scripts of
# this directory. It needs $work, a directory of its own, and $here, this one.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tgtd=${TGTD:-$root/build/tgtd}
server_pid=
memory=$(mktemp -d /dev/shm/lunar-conformance.XXXXXX) # of the cache

# make_config PORT writes $work/config.yaml and the key of its encrypted volumes.
make_config() {
	(umask 077 && head -c 32 /dev/urandom >"$work/key")
	sed -e "s|@PORT@|$1|g" -e "s|@MEMORY@|$memory|g" "$here/config.yaml" >"$work/config.yaml"
}

say() { printf 'conformance: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

# answers ADDRESS PORT: whether somebody listens there.
answers() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

free_port() {
	local port
	for _ in {1..100}; do
		port=$((20000 + RANDOM % 12000))
		answers 127.0.0.1 "$port" || { printf '%s\n' "$port"; return; }
	done
	die "found no free port"
}

# start_server CONFIG PORT: returns when the portal is open.
start_server() {
	"$tgtd" serve -c "$1" --state-dir "$work" >"$work/tgtd.log" 2>&1 &
	server_pid=$!
	for _ in {1..600}; do
		answers 127.0.0.1 "$2" && return
		kill -0 "$server_pid" 2>/dev/null || break
		sleep 0.1
	done
	cat "$work/tgtd.log" >&2
	die "tgtd did not open port $2"
}

# stop_server ends tgtd as an administrator would, and fails if it does not
# end with status 0.
stop_server() {
	local pid=$server_pid status=0
	server_pid=
	kill -0 "$pid" 2>/dev/null || { tail -n 40 "$work/tgtd.log" >&2; die "tgtd has died"; }
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 0 ] || { tail -n 40 "$work/tgtd.log" >&2; die "found exit status $status of tgtd after SIGTERM, expected 0"; }
}

# clean_up is for the EXIT trap.
clean_up() {
	[ -z "$server_pid" ] || kill -KILL "$server_pid" 2>/dev/null || true
	rm -rf "$work" "$memory"
}
