#!/bin/sh
# After the files have gone. Removing keeps all data. Purging removes what the server has
# noted for itself, if it ended in order and has no volumes there.
set -e

[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" = purge ] || exit 0

state=/var/lib/lunar
[ -d "$state" ] || exit 0
if [ -e "$state/segment.note" ]; then
	echo "lunar: $state and /dev/shm/lunar are kept: the cache has data that are not written to their volumes; install Lunar and start it once, or remove both" >&2
	exit 0
fi
# A cache that nothing is noted of has nothing that its volumes lack.
rm -rf /dev/shm/lunar
own=$(cd "$state" && find . -mindepth 1 \( -path ./.kept -o -path ./guests -o -path ./stores -o -path ./identifying -o -path ./generations -o -path ./move-digests -o -name applied.json -o -name naming.json -o -name cluster-config.json -o -name cluster-identity.json -o -name pending.json -o -name identity -o -name tgtd.lock -o -name control.sock \) -prune -o ! -type d -print | head -n 1)
if [ -n "$own" ]; then
	echo "lunar: $state is kept: it has more than the server's notes, such as $own" >&2
	exit 0
fi
rm -rf "$state"
