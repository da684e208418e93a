#!/usr/bin/env bash
# iser.sh [ISCSI-TEST-CU NAME]: runs libiscsi's conformance suite over iSER in the lab's
# guest (scenario iser-suite) and writes what it finds to docs/internals/conformance-iser.md. The
# program is Debian's, or the one given, of a libiscsi that NAME tells, such as
# "libiscsi 1.20.0". A run takes 14 minutes at most, which is not enough for all tests
# under emulation: SUITES names suites or tests, and what was found of the others before
# (in build/conformance/iser.log) is kept. AGAIN=1 only writes the page.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
results=$root/build/conformance
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT

name="libiscsi $(dpkg-query -W -f '${Version}' libiscsi-bin)"
if [ $# -gt 0 ]; then
	install -m 755 "$1" "$files/iscsi-test-cu"
	name=$2
fi
mkdir -p "$results"
if [ -z "${AGAIN:-}" ]; then
	LAB_ARGUMENTS=${SUITES:-} LAB_FILES=$files LAB_SECONDS=${LAB_SECONDS:-890} "$root/scripts/lab/run.sh" iser-suite
	cat "${LAB_LOGS:-$root/build/lab}/33-iser-suite@rdma/guest.log" >>"$results/iser.log"
fi
awk -f "$here/results.awk" "$results/iser.log" | awk '{ last[$1] = $0 } END { for (test in last) print last[test] }' >"$results/iser.found"
iscsi-test-cu -l 2>/dev/null | sed -n 's/^ALL\.\(.*\..*\)/\1/p' >"$results/iser.tests"
awk -v suite="$name" -f "$here/iser.awk" "$here/expected-iser.txt" "$results/iser.log" "$results/iser.tests" "$results/iser.found" \
	>"$root/docs/internals/conformance-iser.md"
echo "wrote docs/internals/conformance-iser.md"
