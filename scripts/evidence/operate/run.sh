#!/usr/bin/env bash
# run.sh [OPTIONS]: measures how build/tgtd is operated and writes docs/reports/operate.md.
# Variables: ONLY (checks, with commas), VOLUMES, CHANGES, WRITERS, OBJECTS, NOTES and TO (other
# files for the results and the page), TGTD (another binary).
set -euo pipefail

cd "$(dirname "$0")/../../.."
readonly out=build/evidence-operate
go -C scripts build -o "../$out" ./evidence/operate
options=(--tgtd "${TGTD:-build/tgtd}")
for name in ONLY VOLUMES CHANGES WRITERS OBJECTS NOTES TO; do
	if [ -n "${!name:-}" ]; then
		options+=("--${name,,}" "${!name}")
	fi
done
exec "$out" "${options[@]}" "$@"
