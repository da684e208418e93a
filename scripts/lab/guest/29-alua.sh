# seconds: 180
# Two target port groups under multipath: I/O takes the optimized path; that is
# cut and restored under checked I/O.
node disk "127.0.0.1:$PORT"
node disk "127.0.0.2:$PORT"
login disk
disk disk 0 >/dev/null
udevadm settle

# path_of ADDRESS: the block device of the session with that portal.
path_of() {
	local connection session
	for connection in /sys/class/iscsi_connection/connection*; do
		[ "$(cat "$connection/persistent_address")" = "$1" ] || continue
		session=${connection##*connection}
		ls /sys/class/iscsi_session/session"${session%%:*}"/device/target*/*:0/block
	done
}
written() { awk '{ print $7 }' "/sys/block/$1/stat"; }
fast=$(path_of 127.0.0.1)
slow=$(path_of 127.0.0.2)
states() { sg_rtpg --decode "/dev/$1" | sed -n 's/.*asymmetric access state : 0x0\([0-9a-f]\).*/\1/p' | xargs; }
must sg_rtpg --decode --extended "/dev/$slow"
equal "$(states "$slow")" "0 1"
sg_vpd --page=di "/dev/$slow" | grep -A2 'Target port group' | grep -q 0x2 || fail "VPD page 83h has no target port group 2"

cat >/etc/multipath.conf <<'CONF'
defaults {
	find_multipaths no
	path_grouping_policy group_by_prio
	prio alua
	failback immediate
	no_path_retry 30
	reservation_key 0xa1
	polling_interval 1
	max_polling_interval 1
}
CONF
modprobe dm_multipath
modprobe scsi_dh_alua
must multipathd
trap 'multipathd shutdown >/dev/null 2>&1 || :' EXIT
groups() { multipath -ll 2>/dev/null | grep -oE 'prio=[0-9]+ status=[a-z]+' | sort | xargs || :; }
eventually "prio=10 status=enabled prio=50 status=active" groups
path=/dev/mapper/$(multipath -l -v1)
must test -b "$path"

before=$(written "$slow")
verified "$path" --bs=16k --size=4M
equal "$(written "$slow")" "$before"

# The optimized path is cut, and comes back.
verified "$path" --bs=16k --size=16M &
io=$!
sleep 2
logout disk -p "127.0.0.1:$PORT"
sleep 2
login disk -p "127.0.0.1:$PORT"
must wait "$io"
eventually "prio=10 status=enabled prio=50 status=active" groups
fast=$(path_of 127.0.0.1)

before=$(written "$slow")
verified "$path" --bs=16k --size=4M
equal "$(written "$slow")" "$before"

# mpathpersist, as fence_mpath uses it: one registration for each path, a reservation
# that all of them share. A path that comes back is registered again by multipathd.
persist() { must mpathpersist "$@" "$path" >/tmp/persist || fail "$(cat /tmp/persist)"; }
keys() {
	sg_turs "/dev/$slow" >/dev/null 2>&1 || : # a unit attention
	sg_persist --no-inquiry --in --read-keys "/dev/$slow" >/tmp/keys || fail "no keys are told"
	grep -oE '0x[0-9a-f]+$' /tmp/keys | sort | xargs || :
}
writes() { dd if=/dev/zero of="/dev/$1" bs=4k count=1 seek=9999 oflag=direct status=none; }
persist --out --register --param-sark=0xa1
equal "$(keys)" "0xa1 0xa1"
persist --out --reserve --param-rk=0xa1 --prout-type=5
persist --in --read-reservation
must grep -i 'registrants only' /tmp/persist
must writes "$fast"
must writes "$slow"
sg_persist --no-inquiry --in --read-full-status "/dev/$slow" | grep -c "$INITIATOR" | grep -qx 2 || fail "not both paths are registered"
verified "$path" --bs=16k --size=4M &
io=$!
logout disk -p "127.0.0.2:$PORT"
login disk -p "127.0.0.2:$PORT"
eventually "prio=10 status=enabled prio=50 status=active" groups
slow=$(path_of 127.0.0.2)
eventually yes eval 'writes "$slow" 2>/dev/null && echo yes || echo no'
must wait "$io"
persist --out --release --param-rk=0xa1 --prout-type=5
persist --out --clear --param-rk=0xa1
equal "$(keys)" ""

# Initiators do not change states that the configuration has not left to them.
sg_stpg --tp=1,2 --state=s,o "/dev/$slow" 2>&1 | grep 'Invalid opcode' || fail "SET TARGET PORT GROUPS is there"
equal "$(states "$slow")" "0 1"

must pgrep -x multipathd
multipathd shutdown || : # it may be gone before it has answered
unused() { # udev looks into a map that was written to, for a moment
	udevadm settle --timeout=10
	if multipath -f "$path" >/dev/null; then echo gone; else echo busy; fi
}
eventually gone unused
