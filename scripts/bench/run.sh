#!/usr/bin/env bash
# run.sh [quick|full] [OPTIONS]: measures lunar's tgtd beside a bare echo, SPDK (--spdk
# PATH of its iscsi_tgt) and C tgt in memory, and writes the tables of
# docs/reports/performance.md. Takes about one minute (quick, the default) or six (full),
# and 5 GiB of memory, with SPDK 7.
#
# run.sh disk [quick|full] [OPTIONS]: the same on the disk below /var/tmp, beside fio,
# into docs/reports/performance-disk.md. Needs 6 GiB there.
#
# run.sh polling [quick|full] [OPTIONS]: settings of `poll` on a disk and in memory, into
# docs/reports/performance-disk.md. Takes about two minutes (quick, the default) or eight.
#
# run.sh builds TGTD [OPTIONS]: this tree's tgtd beside that of another build, into
# docs/reports/performance.md: whether a change has cost speed. Takes about three minutes.
#
# run.sh ladder TGTD [quick|full] [OPTIONS]: this tree's tgtd beside that of another build
# at 1 to 512 requests at a time, into docs/reports/performance.md. Takes less than a
# minute (quick, the default) or three (full).
#
# run.sh cache [quick|full] [OPTIONS]: the parts of the block cache, into
# docs/reports/performance-cache.md. Takes about three minutes (full, the default) or one.
#
# run.sh qos [quick|full] [OPTIONS]: the papers' experiments on the token
# scheduler, with ten initiators, and reservations where the event thread is the bottleneck,
# into docs/reports/qos.md and docs/reports/qos. Takes about three minutes (quick, the default)
# or ten (full), and root for the real-time class.
#
# run.sh iser [OPTIONS]: iSER and TCP of lunar, C tgt and LIO in a guest of the lab,
# into docs/reports/performance-iser.md. Takes about nine minutes; --only WORKLOAD and --others
# SERVER measure a part, such as --only write-4k --others tgt-iser. A guest under emulation
# tells of ratios alone.
#
# run.sh iser-promises [OPTIONS]: a reservation over iSER in a guest of the lab, into
# docs/reports/qos.md. Takes about five minutes.
#
# run.sh soak [--runtime 30m] [OPTIONS]: full load with every byte checked, clients
# that come, go and are killed, and a look at memory, goroutines, threads and
# descriptors every five seconds, into docs/reports/soak.md. Needs 3 GiB on the disk below
# /var/tmp.
#
# `run.sh --help`, `run.sh cache --help` and `run.sh qos --help` list the options; --only
# and --samples measure a table in parts.
set -euo pipefail

cd "$(dirname "$0")/../.."
scripts/setup/packages.sh bench
if [[ ${1:-} = iser* ]]; then
	scripts/setup/packages.sh test
	make build
fi
readonly out=build/bench
mkdir -p "$out"
go build -o "$out/" ./cmd/tgtd ./cmd/tgtload
go -C scripts build -o "../$out/" ./bench
options=(--tgtd "$out/tgtd" --tgtload "$out/tgtload")
if [ "${1:-}" = cache ]; then
	shift
	go test -c -o "$out/" ./cache ./cache/tier ./cache/segment
	options+=(cache --tests "$out")
fi
exec "$out/bench" "${options[@]}" "$@"
