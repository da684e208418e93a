#!/usr/bin/env bash
# fio.sh: the fio jobs for users (scripts/fio) with fio as the initiator, over
# libiscsi. Debian's fio has no such engine: where there is none in PATH, nor in $FIO,
# nothing is run, and the output says so.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/server.bash"
trap clean_up EXIT

export FIO=${FIO:-fio} SIZE=4M RUNTIME=200ms ERASE=yes FIO_OPTIONS=--minimal
jobs=$root/scripts/fio

if ! "$FIO" --enghelp=libiscsi >/dev/null 2>&1; then
	say "fio: skipped: no fio with the libiscsi engine (building one takes longer than the jobs; scripts/fio/README.md)"
	exit
fi

port=$(free_port)
make_config "$port"
start_server "$work/config.yaml" "$port"
url=iscsi://127.0.0.1:$port/iqn.2026-11.example.conformance:file/0
timeout 300 "$jobs/run.sh" "$url" random-read random-write sequential-read sequential-write mixed verify >"$work/output" 2>&1 ||
	{ tail -n 40 "$work/output" >&2; die "fio: FAILED"; }
stop_server
say "fio: $(grep -c '^==' "$work/output") jobs passed"
