#!/usr/bin/env bash
# run.sh DEVICE [JOB...]: runs job files of this directory on a disk, or on an iSCSI
# URL without the kernel's initiator. JOB is the name without .fio; without any, the
# jobs that only read. See README.md.
#
# Environment: ENGINE (io_uring; libiscsi for a URL), SIZE (1G), RUNTIME (20s),
# ERASE=yes (the jobs may write), FIO (fio), FIO_OPTIONS (such as --output-format=json).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
readonly here
readonly reading='random-read sequential-read'

die() { printf 'fio jobs: %s\n' "$*" >&2; exit 1; }

# writes JOB: whether it does.
writes() { grep -qE '^rw=(.*write|randrw)' "$here/$1.fio"; }

# in_use DEVICE: whether it, or a part of it, is mounted or belongs to something.
in_use() { lsblk -nro MOUNTPOINT,TYPE "$1" | awk '$1 ~ /^[\/[]/ || $NF ~ /^(lvm|crypt|raid|mpath)/ { found = 1 } END { exit !found }'; }

check() {
	local job
	command -v "$FIO" >/dev/null || die "no $FIO: install the package fio, or set FIO"
	"$FIO" --enghelp="$ENGINE" >/dev/null 2>&1 || die "this $FIO has no engine $ENGINE; README.md tells how to build one that has"
	for job; do
		[ -f "$here/$job.fio" ] || die "no job '$job', expected one of $(cd "$here" && echo *.fio | sed 's/\.fio//g')"
		! writes "$job" || [ "${ERASE:-}" = yes ] || die "$job overwrites $target; set ERASE=yes if it may"
	done
	case $target in
	/*)
		[ -b "$target" ] || [ -f "$target" ] || die "$target is neither a disk nor a file"
		[ ! -b "$target" ] || ! in_use "$target" || die "$target is in use: see lsblk $target"
		;;
	esac
}

readonly target=${1:-}
[ -n "$target" ] || die "usage: run.sh DEVICE [JOB...]"
shift
export FIO=${FIO:-fio} SIZE=${SIZE:-1G} RUNTIME=${RUNTIME:-20s}
case $target in
iscsi://*)
	export ENGINE=${ENGINE:-libiscsi}
	DEVICE=${target//:/\\:}
	;;
*)
	export ENGINE=${ENGINE:-io_uring}
	DEVICE=$target
	;;
esac
export DEVICE
[ $# -gt 0 ] || set -- $reading
check "$@"
cd "$here"
for job; do
	read -r -a options <<<"${FIO_OPTIONS:-}"
	printf '== %s on %s with %s\n' "$job" "$target" "$ENGINE"
	"$FIO" "${options[@]}" "$job.fio"
done
