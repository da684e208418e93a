# machines: rdma
# seconds: 1200
# A host with a mounted file system moves from LIO to Lunar: the same disk by name and by
# every byte that identifies it, and the file system goes on while its session waits. The
# argument full adds a new login with a check of the file system, and a disk of C tgt.
. /lab/others.bash
ADDRESS=10.9.0.1 PORTAL=10.9.0.1:3260
work=/root/migration
rm -rf $work /dev/shm/moved.img /dev/shm/tgt.img
mkdir -p $work
must modprobe -a dummy target_core_mod target_core_file iscsi_target_mod
must ip link add moving type dummy
must ip address add $ADDRESS/24 dev moving
must ip link set moving up

# raw DEVICE PAGE: a VPD page in digits.
raw() { sg_inq --raw --page="$2" "$1" | od -An -v -tx1 | tr -d ' \n'; }

# unit_designators PAGE: of page 83h those of the logical unit.
unit_designators() {
	local page=$1 at=8 length
	while ((at < ${#page})); do
		length=$((8 + 2 * 16#${page:at+6:2}))
		((16#${page:at+2:2} & 0x30)) || printf '%s\n' "${page:at:length}"
		at=$((at + length))
	done
}

# identity DEVICE: all that a host knows a disk by.
identity() {
	sg_inq --raw "$1" | od -An -v -tx1 -j8 -N28 | tr -d '\n'
	printf '\n80h %s\n83h %s\n' "$(raw "$1" 0x80)" "$(unit_designators "$(raw "$1" 0x83)" | tr '\n' ' ')"
	printf 'blocks %s of %s\n' "$(blockdev --getsz "$1")" "$(blockdev --getss "$1")"
	udevadm settle --timeout=30
	find -L /dev/disk/by-id -samefile "$1" | sort
	/lib/udev/scsi_id --whitelisted --device="$1"
}

# lunar_up FORMAT FILE: serves what the file makes.
lunar_up() {
	must /lab/lunar import "$1" "$2" -o $work/$1.yaml
	must /lab/tgtd check $work/$1.yaml
	/lab/tgtd serve -c $work/$1.yaml --state-dir $work/state-$1 >$work/$1.log 2>&1 3>&- &
	lunar_pid=$!
	eventually 0 listens
}
listens() { (exec 4<>"/dev/tcp/$ADDRESS/3260") 2>/dev/null; echo $?; }
lunar_down() { kill -TERM $lunar_pid; wait $lunar_pid || fail "tgtd ended with status $?: $(tail -n 5 $work/*.log)"; }

# A disk of LIO, as targetcli makes one and writes it down.
serial=9bb4a4c8-2f31-4b0e-9d3c-6d1f0e5a7c21
backend=$LIO/core/fileio_0/accounts
mountpoint -q /sys/kernel/config || must mount -t configfs configfs /sys/kernel/config
truncate -s 128M /dev/shm/moved.img
must mkdir -p $backend
must lio_set "fd_dev_name=/dev/shm/moved.img,fd_dev_size=134217728,fd_buffered_io=1" $backend/control
must lio_set $serial $backend/wwn/vpd_unit_serial
must lio_set 1 $backend/enable
must lio_set 1 $backend/attrib/emulate_model_alias
group=$LIO/iscsi/$BASE:moved/tpgt_1
must mkdir -p $group/np/$PORTAL $group/lun/lun_0
must ln -s $backend $group/lun/lun_0/accounts
must lio_set 1 $group/attrib/authentication
must mkdir -p "$group/acls/$INITIATOR/lun_5"
must lio_set host "$group/acls/$INITIATOR/auth/userid"
must lio_set secret-of-host "$group/acls/$INITIATOR/auth/password"
must lio_set san "$group/acls/$INITIATOR/auth/userid_mutual"
must lio_set secret-of-san "$group/acls/$INITIATOR/auth/password_mutual"
must ln -s $group/lun/lun_0 "$group/acls/$INITIATOR/lun_5/accounts"
must lio_set 1 $group/enable
cat >$work/saveconfig.json <<END
{"fabric_modules": [], "storage_objects": [{"plugin": "fileio", "name": "accounts", "dev": "/dev/shm/moved.img", "size": 134217728,
  "write_back": true, "wwn": "$serial", "attributes": {"block_size": 512, "emulate_model_alias": 1, "emulate_write_cache": 1}}],
 "targets": [{"fabric": "iscsi", "wwn": "$BASE:moved", "tpgs": [{"tag": 1, "enable": true, "attributes": {"authentication": 1, "generate_node_acls": 0},
  "parameters": {}, "luns": [{"index": 0, "storage_object": "/backstores/fileio/accounts"}], "portals": [{"ip_address": "$ADDRESS", "port": 3260, "iser": false}],
  "node_acls": [{"node_wwn": "$INITIATOR", "chap_userid": "host", "chap_password": "secret-of-host", "chap_mutual_userid": "san", "chap_mutual_password": "secret-of-san",
   "mapped_luns": [{"index": 5, "tpg_lun": 0, "write_protect": false}]}]}]}]}
END

node moved $PORTAL
chap moved host secret-of-host san secret-of-san
login moved
device=$(disk moved 5)
before=$(identity "$device")
echo "$before"
must mkfs.ext4 -q "$device"
mkdir -p $work/mounted
must mount "$device" $work/mounted
head -c 4M /dev/urandom >$work/mounted/before
must sync
sum=$(sha256sum <$work/mounted/before)

# LIO goes and Lunar comes, under the mounted file system and the open session.
must lio_set 0 $group/enable
must rm "$group/acls/$INITIATOR/lun_5/accounts"
must rmdir "$group/acls/$INITIATOR/lun_5" "$group/acls/$INITIATOR"
must rm $group/lun/lun_0/accounts
must rmdir $group/np/$PORTAL $group/lun/lun_0 $group $LIO/iscsi/$BASE:moved $backend
lunar_up lio $work/saveconfig.json
head -c 4M /dev/urandom >$work/mounted/after
must sync
echo 3 >/proc/sys/vm/drop_caches
equal "$(sha256sum <$work/mounted/before)" "$sum"
sum=$(sha256sum <$work/mounted/after)
equal "$(disk moved 5)" "$device"
equal "$(identity "$device")" "$before"
must umount $work/mounted
logout moved
if [ "${ARGUMENTS:-}" != full ]; then
	lunar_down
	must ip link delete moving
	exit
fi
login moved
device=$(disk moved 5)
equal "$(identity "$device")" "$before"
must e2fsck -fn "$device"
must mount "$device" $work/mounted
equal "$(sha256sum <$work/mounted/after)" "$sum"
must umount $work/mounted
logout moved
lunar_down

# A disk of C tgt.
filled /dev/shm/tgt.img 64
/usr/sbin/tgtd -f --iscsi "portal=$PORTAL" >/tmp/tgt.log 2>&1 3>&- &
tgt_pid=$!
eventually 0 listens
tgt_admin iscsi target new 1 -T "$BASE:tgt"
tgt_admin iscsi logicalunit new 1 --lun 1 -b /dev/shm/tgt.img
tgt_admin iscsi target bind 1 --initiator-address ALL
cat >$work/targets.conf <<END
<target $BASE:tgt>
    backing-store /dev/shm/tgt.img
</target>
END
attach tgt
device=$(disk tgt 1)
before=$(identity "$device")
echo "$before"
sum=$(sha256sum <"$device")
logout tgt
kill -9 $tgt_pid
wait $tgt_pid || :
lunar_up tgt $work/targets.conf
login tgt
device=$(disk tgt 1)
equal "$(identity "$device")" "$before"
equal "$(sha256sum <"$device")" "$sum"
logout tgt
lunar_down
must ip link delete moving
