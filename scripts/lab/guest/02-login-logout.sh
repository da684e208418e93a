# A login brings a disk; a logout takes it and the connection away again.
attach disk
device=$(disk disk 0)
must dd if="$device" of=/dev/null bs=64k count=16 iflag=direct status=none
equal "$(host connections)" 1
logout disk
must test -z "$(sessions_of disk)"
must test ! -b "$device"
eventually 0 host connections
