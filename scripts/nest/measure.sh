#!/bin/sh
# measure.sh TGTD TGTLOAD ROUNDS SECONDS: what commands take on this machine over loopback,
# for the end-to-end simulator (scripts/sim/nest): server and client on a CPU each, loads
# interleaved. Other work of the machine makes rounds
# slower and none faster, so that of each value the best round counts.
set -eu
tgtd=$1 tgtload=$2 rounds=$3 seconds=$4
dir=$(mktemp -d)
trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null; [ -z "${KEEP:-}" ] || cat "$dir/log" >&2; rm -rf "$dir"' EXIT
port=13391
cat > "$dir/tgtd.yaml" <<YAML
server: {threads: 1, cpus: "0"}
portal-groups:
  loopback: {tag: 1, listen: ["127.0.0.1:$port"]}
volumes:
  memory: {type: ram, size: 64MiB, block-size: 4096}
targets:
  iqn.2026-11.example.nest:memory:
    portal-groups: [loopback]
    auth-group: none
    luns: [{lun: 0, volume: memory}]
YAML
# Before other work of the machine, where one may.
first="nice -n -20"
$first true 2> /dev/null || first=
$first "$tgtd" serve --config "$dir/tgtd.yaml" --state-dir "$dir/state" > "$dir/log" 2>&1 &
pid=$!
# Depths 1 and 32 calibrate the simulator, the others are what it has to predict.
loads="read:1 read:2 read:4 read:8 read:16 read:32 write:1 write:32 rw:4 rw:8 rw:16"
run() {
	$first "$tgtload" --target "iscsi://127.0.0.1:$port/iqn.2026-11.example.nest:memory/0" --cpu 1 --poll 10ms --bs 4k \
		--rw "rand${1%:*}" --depth "${1#*:}" --runtime "$2" --warmup 100ms --server-pid $pid --json
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
	done
done
python3 - "$dir" "$rounds" $loads <<PY
import json, sys, datetime
dir, rounds, loads = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
out = []
for load in loads:
    runs = [json.load(open(f"{dir}/{load}.{n}.json")) for n in range(1, rounds + 1)]
    low = lambda of: round(min(of(r) for r in runs if r["reads"] + r["writes"] > 0), 3)
    kind, depth = load.split(":")
    out.append({"load": kind, "depth": int(depth), "mean_us": low(lambda r: r["latency_us"]["mean"]), "p50_us": low(lambda r: r["latency_us"]["p50"]),
        "server_us": low(lambda r: r["server_cpu"]["us_per_io"]), "client_us": low(lambda r: r["client_cpu"]["us_per_io"])})
cpu = [l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")][0]
json.dump({"date": datetime.date.today().isoformat(), "machine": cpu, "rounds": rounds, "loads": out}, sys.stdout, indent=1)
print()
PY
