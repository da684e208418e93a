# machines: rdma
# seconds: 180
# Portals over RDMA come and go while sessions over RDMA have I/O under way: nobody else
# notices, and who came by one that is gone comes back when it is there again.
. /lab/iser.bash
OTHER=$RDMA_ADDRESS:3261

# applied [PORTAL]...: puts portals over RDMA into force, or none.
applied() {
	local change='/listen-iser:/d'
	(($# == 0)) || change="s|listen-iser: .*|listen-iser: [$(printf '"%s",' "$@")]|"
	tgtd_configure "$change"
	must /lab/lunar apply --yes /tmp/tgtd.yaml
}

# checked NAME DISK OFFSET: writes that are verified, again and again in the background.
declare -A checked
checked() {
	until [ -e /tmp/enough ]; do
		fio --filename="$2" --direct=1 --ioengine=libaio --iodepth=4 --rw=randwrite --bsrange=4k-64k --size=1M --offset="$3" \
			--verify=crc32c --verify_fatal=1 --verify_dump=0 --clocksource=clock_gettime --name=checked >"/tmp/fio.$1" 2>&1 || exit 1
		echo >>"/tmp/rounds.$1"
	done &
	checked[$1]=$!
}

goes_on() { kill -0 "${checked[$1]}" || { tail -n 12 "/tmp/fio.$1"; fail "the I/O of the $1 one failed"; }; }

to_the_end() {
	wait "${checked[$1]}" || { tail -n 12 "/tmp/fio.$1"; fail "the I/O of the $1 one failed"; }
	echo "$(wc -l <"/tmp/rounds.$1") rounds of checked I/O by the $1 one"
}

# closed: how many sessions have ended, but for discovery.
closed() { grep -c 'session closed.*target=iqn' /tmp/tgtd.log || :; }
other_disks() { find_disks disk 0 | grep -vcx "$first" || :; }
rounds() { wc -l <"/tmp/rounds.$1"; }

# next_round NAME: I/O that has begun from now on has ended.
next_round() {
	local tries now
	now=$(rounds "$1")
	for ((tries = 0; tries < 600; tries++)); do
		goes_on "$1"
		[ "$(rounds "$1")" -lt $((now + 2)) ] || return 0
		sleep 0.1
	done
	fail "the I/O of the $1 one hangs"
}

rm -f /tmp/enough /tmp/rounds.*
touch /tmp/rounds.first /tmp/rounds.second
tgtd_configure
tgtd_start
node disk "$PORTAL" iser
setting disk node.session.timeo.replacement_timeout 60
# udev would read the disks for a long time beside all the I/O.
udevadm control --stop-exec-queue
login disk
first=$(disk disk 0)
checked first "$first" 0

applied iser0 "$OTHER"
iscsiadm -m discovery -t sendtargets -p "$PORTAL" -o nonpersistent -I iser | grep "^$OTHER,.*:disk" || fail "the new portal is not told of"
node disk "$OTHER" iser
must iscsiadm -m node -T "$BASE:disk" -p "$OTHER" -I iser -o update -n node.session.timeo.replacement_timeout -v 60
must iscsiadm -m node -T "$BASE:disk" -p "$OTHER" -I iser --login
eventually 1 other_disks
second=$(find_disks disk 0 | grep -vx "$first")
next_round first
equal "$(closed)" 0
equal "$(sessions_of disk | wc -l) $(rdma_status connections)" "2 2"
checked second "$second" 16M

# The first one's portal goes, in the middle of its I/O, and comes back.
applied "$OTHER"
eventually 1 closed
refused timeout 10 iscsi-inq "iser://$PORTAL/$BASE:suite/0"
next_round second
goes_on first
applied "$OTHER" iser0
next_round first
touch /tmp/enough
to_the_end first
to_the_end second
equal "$(closed)" 1
equal "$(rdma_status connections)" 2

# All of them go, and TCP stays.
must iscsiadm -m node -T "$BASE:disk" --logout
udevadm control --start-exec-queue
applied
equal "$(rdma_status connections)" 0
refused timeout 10 iscsi-inq "iser://$OTHER/$BASE:suite/0"
must iscsiadm -m discovery -t sendtargets -p "$PORTAL" -o nonpersistent
no_io_errors
tgtd_stop
