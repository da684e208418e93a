#!/bin/sh
# measure.sh TGTD TGTLOAD ROUNDS SECONDS: what commands take on this machine over loopback,
# for the end-to-end simulator (scripts/sim/nest): server and client on a CPU each, or on one
# CPU together, where never both work at a time. Loads are interleaved. A machine is not
# as fast in all rounds: of each value the ratio to a read at depth 1 of the same round counts,
# by the median.
set -eu
tgtd=$1 tgtload=$2 rounds=$3 seconds=$4
dir=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null; wait $pids 2>/dev/null; [ -z "${KEEP:-}" ] || cat "$dir/log" >&2; rm -rf "$dir"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
# Before other work of the machine, where one may.
first="nice -n -20"
$first true 2> /dev/null || first=
# serve PORT KEYS: a server that looks for work, or sleeps while there is none.
serve() {
	cat > "$dir/$1.yaml" <<YAML
server: {threads: 1, cpus: "0"$2}
portal-groups:
  loopback: {tag: 1, listen: ["127.0.0.1:$1"]}
volumes:
  memory: {type: ram, size: 64MiB, block-size: 4096}
targets:
  iqn.2026-11.example.nest:memory:
    portal-groups: [loopback]
    auth-group: none
    luns: [{lun: 0, volume: memory}]
YAML
	$first "$tgtd" serve --config "$dir/$1.yaml" --state-dir "$dir/state$1" >> "$dir/log" 2>&1 &
	pids="$pids $!"
}
apart=13391 together=13392
serve $apart ""
serve $together ", poll: off"
# Depths 1 and 32 calibrate the simulator, the others are what it has to predict.
loads="read:1 read:2 read:4 read:8 read:16 read:32 write:1 write:32 rw:4 rw:8 rw:16 read:1:one read:32:one write:1:one write:32:one"
# run KIND:DEPTH[:one] TIME
run() {
	local kind depth cpus alone port=$apart own="--cpu 1 --poll 10ms"
	IFS=: read -r kind depth cpus <<LOAD
$1
LOAD
	alone=""
	# A client of the batch class does not interrupt the server when that sends: each works
	# until it has nothing to do.
	[ -z "$cpus" ] || port=$together own="--cpu 0" alone="chrt --batch 0"
	$first $alone "$tgtload" --target "iscsi://127.0.0.1:$port/iqn.2026-11.example.nest:memory/0" $own --bs 4k \
		--rw "rand$kind" --depth "$depth" --runtime "$2" --warmup 100ms --json
}
tries=0
until run read:1 100ms > /dev/null 2> "$dir/error" && run read:1:one 100ms > /dev/null 2> "$dir/error"; do
	tries=$((tries + 1))
	[ $tries -lt 50 ] || { cat "$dir/error" "$dir/log" >&2; exit 1; }
	sleep 0.3
done
for round in $(seq "$rounds"); do
	for load in $loads; do
		run "$load" "${seconds}s" > "$dir/$load.$round.json"
	done
done
python3 - "$dir" "$rounds" $loads <<PY
import json, sys, datetime, statistics
dir, rounds, loads = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
out, first = [], None
for load in loads:
    runs = [json.load(open(f"{dir}/{load}.{n}.json"))["latency_us"] for n in range(1, rounds + 1)]
    first = first or runs
    whole = [n for n in range(rounds) if runs[n]["p50"] > 0 and first[n]["p50"] > 0]
    mid = lambda key: round(statistics.median(runs[n][key] / first[n]["p50"] for n in whole) * statistics.median(r["p50"] for r in first if r["p50"] > 0), 3)
    kind, depth, *one = load.split(":")
    out.append({"load": kind, "depth": int(depth), "one_cpu": bool(one), "mean_us": mid("mean"), "p50_us": mid("p50")})
cpu = [l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")][0]
json.dump({"date": datetime.date.today().isoformat(), "machine": cpu, "rounds": rounds, "loads": out}, sys.stdout, indent=1)
print()
PY
