# The configuration changes under checked I/O: a disk grows and shrinks and a LUN
# comes and goes, disks are opened anew behind the cache, without a new login, and who
# is not concerned notices nothing.
# What udev is to do about a capacity that has changed is what distributions do
# who ship a rule for it.
mkdir -p /run/udev/rules.d
cat >/run/udev/rules.d/90-scsi-ua.rules <<'RULE'
ACTION=="change", SUBSYSTEM=="scsi", ENV{SDEV_UA}=="CAPACITY_DATA_HAS_CHANGED", TEST=="rescan", ATTR{rescan}="x"
RULE
must udevadm control --reload
attach disk
attach busy
device=$(disk disk 0)
busy=$(disk busy 0)
sessions=$(sessions_of disk; sessions_of busy)
mib() { echo $(($(blockdev --getsize64 "$1") >> 20)); }
asked() { dd if="$device" of=/dev/null bs=4k count=1 iflag=direct status=none; mib "$device"; }

verified "$busy" --bs=16k --size=48M --rate_iops=200 &
io=$!
verified "$device" --bs=16k --size=16M --rate_iops=100 &
same=$!
equal "$(mib "$device")" 64
sleep 1
echo "host: $(host apply apply-more)"
eventually 96 asked
added=$(disk disk 1)
verified "$added" --bs=16k --size=4M
must kill -0 "$io"
must wait "$same"
must blockdev --flushbufs "$added"
udevadm settle --timeout=30
echo 1 >"/sys/block/${added##*/}/device/delete"
echo "host: $(host apply apply-less)"
eventually 48 asked
verified "$device" --bs=16k --size=4M
must wait "$io"
equal "$(sessions_of disk; sessions_of busy)" "$sessions"
no_io_errors
rm /run/udev/rules.d/90-scsi-ua.rules
