# machines: rdma
# The kernel's ib_iser logs in and works: discovery, CHAP, checked I/O of all sizes,
# a file system, TCP beside it, logins side by side.
. /lab/iser.bash

tgtd_configure
tgtd_start
equal "$(discover -I iser)" "$(printf '%s\n' "$BASE:chap" "$BASE:disk" "$BASE:suite")"
node disk "$PORTAL" iser
login disk
disk=$(disk disk 0)
iscsiadm -m session | grep -q "^iser: .*$BASE:disk" || fail "no session over iSER: $(iscsiadm -m session)"
/lab/lunar status | grep -q ' iser ' || fail "lunar status does not tell of it: $(/lab/lunar status)"
verified "$disk" --bs=4k --size=1M \
	--name=b64k --stonewall --bs=64k --size=4M --offset=4M \
	--name=b512k --stonewall --bs=512k --size=8M --offset=16M \
	--name=b2044k --stonewall --bs=2044k --size=8176k --offset=40M

# The same unit over TCP: what one writes, the other reads.
node disk "$PORTAL" default
must iscsiadm -m node -T "$BASE:disk" -p "$PORTAL" -I default --login
udevadm settle --timeout=30
tcp=$(find_disks disk 0 | grep -vx "$disk")
head -c 3M /dev/urandom >/tmp/written
must dd if=/tmp/written of="$tcp" bs=512k oflag=direct status=none
must cmp -n 3M /tmp/written <(dd if="$disk" bs=1M count=3 iflag=direct status=none)
must dd if=/tmp/written of="$disk" bs=192k seek=16 oflag=direct status=none
must cmp -n 3M /tmp/written <(dd if="$tcp" bs=1M skip=3 count=3 iflag=direct status=none)
verified "$disk" --bsrange=4k-256k --size=2M --offset=8M --name=tcp --filename="$tcp" --bsrange=4k-256k --size=2M --offset=16M
logout disk -p "$PORTAL" -I default
file_system ext4 "$(disk disk 1)"
logout disk

# Mutual CHAP; a wrong secret is refused.
node chap "$PORTAL" iser
chap chap lab wrong-secret-indeed
login_refused chap
chap chap lab initiator-secret target targets-own-secret
login chap
disk chap 0 >/dev/null
logout chap

no_io_errors
equal "$(rdma_status failures)" 0
equal "$(rdma_status connections)" 0
/lab/lunar status | tail -n 3
tgtd_stop
