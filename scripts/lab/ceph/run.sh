#!/usr/bin/env bash
# run.sh: starts a Ceph cluster of one host, runs the tests of backstore/rbd/native on it, and
# ends it. Without Ceph's programs it says so and ends well.
#
# Environment: GO (go), and what cluster.sh takes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
readonly here
root=$(cd "$here/../../.." && pwd)
readonly root

for program in ceph-mon ceph-osd rbd; do
	command -v "$program" >/dev/null || {
		echo "ceph: SKIPPED: found no $program; scripts/setup/packages.sh ceph installs it"
		exit 0
	}
done

dir=$(mktemp -d "${TMPDIR:-/tmp}/lunar-ceph.XXXXXX")
trap '"$here/cluster.sh" down "$dir"' EXIT
"$here/cluster.sh" up "$dir"
cd "$root"
LUNAR_CEPH=$dir "${GO:-go}" test -count 1 -timeout 10m -tags "rbd invariants" ./backstore/rbd/native "$@"
