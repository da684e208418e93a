# What sg3_utils reads from the LU and what Linux concludes from it.
attach several
device=$(disk several 0)
device4k=$(disk several 1)

must sg_turs -v "$device"
must sg_inq "$device"
for page in sv sn di bl bdc lbpv; do
	must sg_vpd --page="$page" "$device"
done
must sg_readcap "$device"
must sg_readcap -l "$device"
must sg_readcap -l "$device4k"
must sg_luns -v "$device"
equal "$(sg_luns "$device" | grep -c '^ *0[0-9a-f]\{15\}$')" 4
must sg_modes -a "$device"
must sg_requests "$device"
must sg_verify --lba=0 --count=64 "$device"
must sg_get_lba_status --lba=0 "$device"
must sg_sync "$device"

equal "$(blockdev --getsize64 "$device")" $((16 << 20))
equal "$(blockdev --getss "$device")" 512
equal "$(blockdev --getss "$device4k")" 4096
equal "$(blockdev --getsize64 "$device4k")" $((512 << 20))

# Names differ between LUs and stay the same over a new login.
identity() { sg_vpd --page=di --quiet "$1" && sg_vpd --page=sn "$1"; }
before=$(identity "$device")
must test "$before" != "$(identity "$device4k")"
logout several
login several
equal "$before" "$(identity "$(disk several 0)")"
