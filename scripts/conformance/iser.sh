#!/usr/bin/env bash
# iser.sh [ISCSI-TEST-CU NAME]: runs libiscsi's conformance suite over iSER in the lab's
# guest (scenario iser-suite) and writes what it finds to docs/conformance-iser.md. The
# program is Debian's, or the one given, of a libiscsi that NAME tells, such as
# "libiscsi 1.20.3". All suites take half an hour under emulation; SUITES names some.
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
LAB_ARGUMENTS=${SUITES:-} LAB_FILES=$files LAB_SECONDS=${LAB_SECONDS:-1200} "$root/scripts/lab/run.sh" iser-suite
log=${LAB_LOGS:-$root/build/lab}/33-iser-suite@rdma/guest.log
awk -f "$here/results.awk" "$log" >"$results/iser.results"
awk -v suite="$name" -f "$here/iser.awk" "$results/iser.results" >"$root/docs/conformance-iser.md"
echo "wrote docs/conformance-iser.md"
