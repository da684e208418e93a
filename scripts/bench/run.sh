#!/usr/bin/env bash
# run.sh [quick|full] [OPTIONS]: measures lunar's tgtd against C tgt on this
# machine and writes the tables of docs/performance.md. Takes about one minute
# (quick, the default) or five (full). `run.sh --help` lists the options.
set -euo pipefail

cd "$(dirname "$0")/../.."
scripts/setup/packages.sh bench
mkdir -p build/bench
go build -o build/bench/ ./cmd/tgtd ./cmd/tgtload ./scripts/bench
exec build/bench/bench --tgtd build/bench/tgtd --tgtload build/bench/tgtload "$@"
