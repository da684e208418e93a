#!/usr/bin/env bash
# tests.sh: runs the test suites of HEAD again and again, each time in a fresh clone and
# on one CPU that something else keeps busy, and writes docs/reports/tests.md. It ends with 1 if a
# run was not green; what those said is in build/evidence-tests. Variables: ROUNDS (20),
# SUITES (targets of make, "unit race conformance"; "test" is all of it, the lab included),
# CORE (0), BUSY (processes that compete for the CPU, 1).
set -euo pipefail

cd "$(dirname "$0")/../.."
readonly rounds=${ROUNDS:-20} suites=${SUITES:-unit race conformance} core=${CORE:-0} busy=${BUSY:-1}
readonly logs=$PWD/build/evidence-tests origin=$PWD document=$PWD/docs/reports/tests.md
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
	echo "tests.sh: there are changes that are not committed: a clone would be without them" >&2
	exit 2
fi
commit=$(git rev-parse --short HEAD)
scratch=$(mktemp -d)
competitors=()
end() {
	for pid in "${competitors[@]}"; do kill "$pid" 2>/dev/null || true; done
	chmod -R u+w "$scratch"
	rm -rf "$scratch"
}
trap end EXIT
rm -rf "$logs"
mkdir -p "$logs"

for ((i = 0; i < busy; i++)); do
	taskset -c "$core" sh -c 'while :; do :; done' &
	competitors+=($!)
done

# failures LOG: the tests that failed, or else the last line.
failures() {
	local names
	names=$(sed -n 's/^ *--- FAIL: \([^ ]*\).*/\1/p' "$1" | sort -u | paste -sd ' ')
	echo "${names:-$(tail -n 1 "$1" | tr '|`' '  ')}"
}

# run ROUND SUITE: one row of the table.
run() {
	local log=$logs/$1-$2.log clone=$scratch/$1 began=$SECONDS result=green said=
	[ -d "$clone" ] || git clone --quiet "$origin" "$clone"
	if GOFLAGS="${GOFLAGS:-} -count=1" taskset -c "$core" make -C "$clone" "$2" >"$log" 2>&1 </dev/null; then
		rm "$log"
	else
		result=red
		said=$(failures "$log")
	fi
	echo "| $1 | $2 | $result | $(((SECONDS - began + 30) / 60)) | $said |" | tee -a "$scratch/rows"
}

for ((round = 1; round <= rounds; round++)); do
	for suite in $suites; do run "$round" "$suite"; done
	chmod -R u+w "${scratch:?}/$round"
	rm -rf "${scratch:?}/$round"
done

total=$(wc -l <"$scratch/rows")
green=$(grep -c '| green |' "$scratch/rows" || true)
cat >"$document" <<DOCUMENT
# The test suites, run again and again

Written by \`make evidence-tests\`: commit $commit, $(date -u +%F), each round in a fresh clone, all of it on one CPU of $(nproc) ($(uname -m), Linux $(uname -r)), for which $busy other process(es) competed without a pause. No result was taken from a cache.

**$green of $total runs were green.**

| round | make | result | minutes | failed |
|---|---|---|---|---|
$(cat "$scratch/rows")
DOCUMENT
[ "$green" -eq "$total" ]
