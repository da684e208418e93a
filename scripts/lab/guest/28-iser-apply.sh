# machines: rdma
# Portals over RDMA come and go while sessions over RDMA have I/O under way: nobody else
# notices, and who came by one that is gone comes back when it is there again.
. /lab/iser.bash
OTHER=$RDMA_ADDRESS:3261

# applied PORTAL...: puts portals over RDMA into force.
applied() {
	tgtd_configure "s|listen-iser: .*|listen-iser: [$(printf '"%s",' "$@")]|"
	must /lab/tgtd apply /tmp/tgtd.yaml
}

# checked NAME DISK OFFSET: writes that are verified, in the background.
declare -A checked
checked() {
	fio --filename="$2" --direct=1 --ioengine=libaio --iodepth=4 --rw=randwrite --bsrange=4k-64k --size=8M --offset="$3" \
		--rate=,2M --verify=crc32c --verify_fatal=1 --verify_dump=0 --clocksource=clock_gettime --name=checked >"/tmp/fio.$1" 2>&1 &
	checked[$1]=$!
}

goes_on() { kill -0 "${checked[$1]}" || fail "the I/O of $1 had ended already: $(tail -n 5 "/tmp/fio.$1")"; }

to_the_end() {
	wait "${checked[$1]}" || { tail -n 12 "/tmp/fio.$1"; fail "checked I/O by the portal that is $1 did not survive"; }
	echo "checked I/O by the portal that is $1: $(grep -E '^ +write:' "/tmp/fio.$1")"
}

closed() { grep -c 'session closed' /tmp/tgtd.log || :; }

tgtd_configure
tgtd_start
node disk "$PORTAL" iser
setting disk node.session.timeo.replacement_timeout 60
login disk
first=$(disk disk 0)
checked first "$first" 0

applied iser0 "$OTHER"
discover -I iser >/dev/null
iscsiadm -m discovery -t sendtargets -p "$PORTAL" -o nonpersistent -I iser | grep "^$OTHER,.*:disk" || fail "the new portal is not told of"
node disk "$OTHER" iser
must iscsiadm -m node -T "$BASE:disk" -p "$OTHER" -I iser -o update -n node.session.timeo.replacement_timeout -v 60
must iscsiadm -m node -T "$BASE:disk" -p "$OTHER" -I iser --login
udevadm settle --timeout=30
second=$(find_disks disk 0 | grep -vx "$first")
goes_on first
equal "$(sessions_of disk | wc -l) $(rdma_status connections)" "2 2"
checked second "$second" 16M

# The first one's portal goes, in the middle of its I/O, and comes back.
sleep 0.5
before=$(closed)
applied "$OTHER"
goes_on first
goes_on second
eventually $((before + 1)) closed
refused iscsiadm -m discovery -t sendtargets -p "$PORTAL" -o nonpersistent -I iser
goes_on first
applied "$OTHER" iser0
to_the_end second
to_the_end first
equal "$(closed)" $((before + 1))
equal "$(rdma_status connections)" 2

# All of them go, and TCP stays.
logout disk
applied
equal "$(rdma_status connections)" 0
refused iscsiadm -m discovery -t sendtargets -p "$OTHER" -o nonpersistent -I iser
must iscsiadm -m discovery -t sendtargets -p "$PORTAL" -o nonpersistent
no_io_errors
tgtd_stop
