#!/bin/sh
# measure.sh TGTD TGTLOAD ROUNDS SECONDS: what commands take on this machine over loopback, server
# and client on a CPU each, for the end-to-end simulator (scripts/sim/nest). Both look for work and
# never sleep. Loads are interleaved, and behind each load other work of the machine has as much
# time. A machine is not as fast in all rounds: of each value the ratio to a read at depth 1 of the
# same round counts, by the median.
set -eu
# A session of its own comes before other work of the machine, where one may: between sessions the
# kernel divides by their nice values (autogroup), within one by those of processes.
[ -n "${SESSION:-}" ] || SESSION=own exec setsid -w "$0" "$@"
echo -20 2> /dev/null > /proc/self/autogroup || :
tgtd=$1 tgtload=$2 rounds=$3 seconds=$4
dir=$(mktemp -d)
pid=
trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null; [ -z "${KEEP:-}" ] || cat "$dir/log" >&2; rm -rf "$dir"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
first="nice -n -20"
$first true 2> /dev/null || first=
cat > "$dir/yaml" <<YAML
server: {threads: 1, cpus: "0"}
portal-groups:
  loopback: {tag: 1, listen: ["127.0.0.1:13391"]}
volumes:
  memory: {type: ram, size: 64MiB, block-size: 4096}
targets:
  iqn.2026-11.example.nest:memory:
    portal-groups: [loopback]
    auth-group: none
    luns: [{lun: 0, volume: memory}]
YAML
$first "$tgtd" serve --config "$dir/yaml" --state-dir "$dir/state" > "$dir/log" 2>&1 &
pid=$!
# Depths 1 and 32 calibrate the simulator, the others are what it has to predict. In turns server
# and client never work at a time: each has all 32 commands, or none.
loads="read:1 read:2 read:4 read:8 read:16 read:32 read:32:turns write:1 write:32 write:32:turns rw:4 rw:8 rw:16"
# run KIND:DEPTH[:turns] TIME
run() {
	local kind depth turns
	IFS=: read -r kind depth turns <<LOAD
$1
LOAD
	$first "$tgtload" --target iscsi://127.0.0.1:13391/iqn.2026-11.example.nest:memory/0 --cpu 1 --poll 10ms --bs 4k \
		--rw "rand$kind" --depth "$depth" ${turns:+--in-turns} --runtime "$2" --warmup 100ms --json
}
tries=0
until run read:1 100ms > /dev/null 2> "$dir/error"; do
	tries=$((tries + 1))
	[ $tries -lt 50 ] || { cat "$dir/error" "$dir/log" >&2; exit 1; }
	sleep 0.3
done
for round in $(seq "$rounds"); do
	for load in $loads; do
		run "$load" "${seconds}s" > "$dir/$load.$round.json"
		sleep "$seconds"
	done
done
python3 - "$dir" "$rounds" $loads <<PY
import json, sys, datetime, statistics
dir, rounds, loads = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
out, first = [], None
for load in loads:
    runs = [json.load(open(f"{dir}/{load}.{n}.json")) for n in range(1, rounds + 1)]
    first = first or runs
    whole = [n for n in range(rounds) if runs[n]["iops"] > 0 and first[n]["iops"] > 0]
    usual = statistics.median(r["latency_us"]["p50"] for r in first if r["iops"] > 0)
    mid = lambda key: round(usual * statistics.median(runs[n]["latency_us"][key] / first[n]["latency_us"]["p50"] for n in whole), 3)
    busy = round(statistics.median(runs[n]["client_busy"] for n in whole), 4)
    kind, depth, *turns = load.split(":")
    out.append({"load": kind, "depth": int(depth), "in_turns": bool(turns), "mean_us": mid("mean"), "p50_us": mid("p50"), "client_busy": busy})
cpu = [l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")][0]
json.dump({"date": datetime.date.today().isoformat(), "machine": cpu, "rounds": rounds, "loads": out}, sys.stdout, indent=1)
print()
PY
