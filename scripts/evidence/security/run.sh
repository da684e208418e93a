#!/usr/bin/env bash
# run.sh [OPTIONS]: attacks build/tgtd with a canary beside it, notes what came of it and
# writes docs/reports/security-evidence.md. Variables: PHASES and SECONDS_EACH (how often the
# canary is watched alone and with each attack, and how long), MINUTES (of each kind of
# fuzzing; 0 leaves it out), GUIDED (seconds of each coverage-guided fuzzer), BUSY=1 (the machine has
# other work: fuzz, and leave alone what the canary saw), SCALE=1 (1,000 sessions, 10,000 connections, 256 LUs, a login storm), ONLY
# (attacks, with commas), SEED, NOTES (another file for the results, such as
# docs/reports/security-evidence/before.json), TGTD (another binary).
set -euo pipefail

cd "$(dirname "$0")/../../.."
readonly out=build/evidence-security
go -C scripts build -o "../$out" ./evidence/security
options=(--tgtd "${TGTD:-build/tgtd}")
for name in PHASES MINUTES GUIDED ONLY SEED NOTES; do
	if [ -n "${!name:-}" ]; then
		options+=("--${name,,}" "${!name}")
	fi
done
if [ -n "${SECONDS_EACH:-}" ]; then options+=(--seconds "$SECONDS_EACH"); fi
if [ -n "${BUSY:-}" ]; then options+=(--busy); fi
if [ -n "${SCALE:-}" ]; then options+=(--scale); fi
status=0
"$out" run "${options[@]}" "$@" || status=$?
"$out" document
exit "$status"
