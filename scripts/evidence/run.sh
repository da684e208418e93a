#!/usr/bin/env bash
# run.sh [OPTIONS]: breaks build/tgtd by kills, losses of power and flipped bits, notes
# what came of it and writes docs/reports/reliability.md. Needs root. Variables: POINTS, KILLS,
# MEMBERS, CUTS, EXT4, FLIPS, CONFIGURATIONS (how many; 0 leaves it out), ONLY (checks, with
# commas), NOTES (another file for the results, such as docs/reports/reliability/before.json),
# TGTD (another binary).
set -euo pipefail

cd "$(dirname "$0")/../.."
readonly out=build/evidence
go -C scripts build -o "../$out" ./evidence
options=(--tgtd "${TGTD:-build/tgtd}")
for name in POINTS KILLS MEMBERS CUTS EXT4 FLIPS CONFIGURATIONS ONLY NOTES; do
	if [ -n "${!name:-}" ]; then
		options+=("--${name,,}" "${!name}")
	fi
done
status=0
"$out" run "${options[@]}" "$@" || status=$?
"$out" document
exit "$status"
