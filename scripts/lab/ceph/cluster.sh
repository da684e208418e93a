#!/usr/bin/env bash
# cluster.sh up DIRECTORY: a Ceph cluster of this host, without systemd and without a manager,
# all of it below DIRECTORY. What runs already is left alone, what is missing is started.
# cluster.sh down DIRECTORY: ends its daemons and removes the directory.
# cluster.sh restart DIRECTORY N: starts OSD N again, after it was killed.
#
# Environment: OSDS (1), SIZE of replicas (OSDS), STORE memstore or bluestore (memstore, which
# forgets everything when its OSD ends), GIB of each OSD (4), AUTH none or cephx (none), ADDRESS of
# this host (127.0.0.1).
set -euo pipefail

readonly what=${1:?up, down or restart} dir=${2:?a directory}
readonly osds=${OSDS:-1} store=${STORE:-memstore} auth=${AUTH:-none} bytes=$((${GIB:-4} << 30))
readonly size=${SIZE:-$osds} address=${ADDRESS:-127.0.0.1}
export CEPH_CONF=$dir/ceph.conf CEPH_ARGS=

alive() { [ -r "$dir/run/$1.pid" ] && kill -0 "$(cat "$dir/run/$1.pid")" 2>/dev/null; }

# start NAME COMMAND...
start() {
	alive "$1" && return
	setsid "${@:2}" >>"$dir/log/$1.out" 2>&1 </dev/null &
	echo $! >"$dir/run/$1.pid"
}

port() { python3 -c 'import socket; s = socket.socket(); s.bind(("'"$address"'", 0)); print(s.getsockname()[1])'; }

# configure: a short paxos interval makes each change of the cluster's map quick; on one host
# any OSD has to be enough to report another one. The lease by which an OSD may be read, of so many
# heartbeat graces, is renewed by replicas: an OSD without any that stands still for as long
# never serves again.
configure() {
	local libraries fsid=$1 monitor=$2
	libraries=$(dirname "$(ldconfig -p | awk '/librados\.so\.2/ { print $NF; exit }')")
	cat >"$CEPH_CONF" <<CONF
[global]
fsid = $fsid
mon host = [v2:$monitor/0]
mon initial members = a
public addr = $address
cluster addr = $address
auth cluster required = $auth
auth service required = $auth
auth client required = $auth
keyring = $dir/keyring
run dir = $dir/run
admin socket = $dir/run/\$name.\$pid.asok
log file = $dir/log/\$name.log
log to stderr = false
err to stderr = false
crash dir = $dir/log
plugin dir = $libraries/ceph
erasure code dir = $libraries/ceph/erasure-code
osd class dir = $libraries/rados-classes
osd crush chooseleaf type = 0
osd pool default size = $size
osd pool default min size = $((size > 1 ? size - 1 : 1))
osd pool default read lease ratio = $([ "$size" -gt 1 ] && echo 0.8 || echo 15)
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
mon allow pool delete = true
mon allow pool size one = true
mon warn on pool no redundancy = false
mon osd down out interval = 0
osd heartbeat interval = 1
osd heartbeat grace = 4
mon osd adjust heartbeat grace = false
mon osd min down reporters = 1
mon osd reporter subtree level = osd
mon max pg per osd = 1000
[mon]
mon data = $dir/mon
mon data avail warn = 1
mon data avail crit = 1
paxos propose interval = 0.05
paxos min wait = 0.01
[osd]
osd data = $dir/osd.\$id
osd objectstore = $store
memstore device bytes = $bytes
memstore page set = true
bluestore block size = $bytes
bluestore fsck on mount = false
osd memory target = 939524096
osd memory cache min = 33554432
osd op num shards = 2
osd op num threads per shard = 1
CONF
}

make_monitor() {
	local fsid monitor
	fsid=$(cat /proc/sys/kernel/random/uuid) monitor=$address:$(port)
	configure "$fsid" "$monitor"
	ceph-authtool --create-keyring "$dir/keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
	ceph-authtool "$dir/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' >/dev/null
	monmaptool --create --clobber --fsid "$fsid" --addv a "[v2:$monitor/0]" "$dir/monmap" >/dev/null
	mkdir "$dir/mon"
	ceph-mon --mkfs -i a --monmap "$dir/monmap" --keyring "$dir/keyring"
}

make_osd() {
	local uuid key
	mkdir "$dir/osd.$1"
	uuid=$(cat /proc/sys/kernel/random/uuid) key=$(ceph-authtool --gen-print-key)
	echo "{\"cephx_secret\": \"$key\"}" >"$dir/osd.$1/new.json"
	[ "$(ceph osd new "$uuid" "$1" -i "$dir/osd.$1/new.json")" = "$1" ]
	ceph-authtool --create-keyring "$dir/osd.$1/keyring" -n "osd.$1" --add-key "$key" >/dev/null
	ceph-osd -i "$1" --mkfs --osd-uuid "$uuid" --keyring "$dir/osd.$1/keyring" >>"$dir/log/osd.$1.out" 2>&1
}

start_osd() { start "osd.$1" ceph-osd -f -i "$1" --keyring "$dir/osd.$1/keyring"; }

up() {
	local i
	mkdir -p "$dir"/{run,log}
	[ -d "$dir/mon" ] || make_monitor
	start mon.a ceph-mon -f -i a
	for ((i = 0; i < osds; i++)); do
		[ -d "$dir/osd.$i" ] || make_osd "$i"
		start_osd "$i"
	done
	if [ ! -e "$dir/pool" ]; then
		ceph osd pool create rbd 8 8 >/dev/null 2>&1
		ceph osd pool set rbd size "$size" --yes-i-really-mean-it >/dev/null 2>&1
		ceph osd pool application enable rbd rbd >/dev/null 2>&1
		touch "$dir/pool"
	fi
	timeout 60 rados -p rbd put probe "$CEPH_CONF" # which returns when the cluster serves
}

down() {
	local file process
	for file in "$dir"/run/*.pid; do
		[ -r "$file" ] || continue
		process=$(cat "$file")
		case $(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null || :) in
		ceph-mon* | ceph-osd*) kill -KILL "$process" || : ;;
		esac
	done
	rm -rf "$dir"
}

case $what in
up) up ;;
down) down ;;
restart) start_osd "${3:?the number of an OSD}" ;;
*) echo "cluster.sh: found $what, expected up, down or restart" >&2; exit 2 ;;
esac
