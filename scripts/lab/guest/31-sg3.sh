# The medium commands of sg3_utils, one after the other, against files that know
# what must be there: what its authors read out of the standards is not our reading.
attach several
first=$(disk several 0)
second=$(disk several 2)

# A pattern at LBA 0 to 2047 of both, not the same.
head -c 1M /dev/urandom >/tmp/one
head -c 1M /dev/urandom >/tmp/two
must dd if=/tmp/one of="$first" bs=64k oflag=direct status=none
must dd if=/tmp/two of="$second" bs=64k oflag=direct status=none

# blocks DEVICE LBA NUMBER: what is there. part FILE LBA NUMBER: what was put there.
blocks() { sg_dd if="$1" bs=512 skip="$2" count="$3" of=- 2>/dev/null; }
part() { dd if="$1" bs=512 skip="$2" count="$3" status=none; }
there() { must cmp <(blocks "$1" "$2" "$3") "${4:--}"; }
# miscompares COMMAND...: it ends with the exit status for that, 14.
miscompares() {
	local status=0
	echo "! $*"
	"$@" || status=$?
	equal "$status" 14
}

# What is offered is what answers: the pages, logs and commands that it lists.
must sg_vpd --all "$first" >/tmp/vpd
must sg_opcodes --rctd "$first" >/tmp/opcodes
for command in 'Extended copy' 'Compare and write' 'Unmap' 'Write same(16)' 'Get LBA status' 'Persistent reserve out'; do
	must grep -qi "$command" /tmp/opcodes
done
must sg_logs --all "$first" >/tmp/logs
must grep -qi 'provisioning' /tmp/logs
must sg_senddiag --test "$first"
must sg_timestamp "$first"

# WRITE SAME: a block again and again, zeroes without a block, and unmapped.
head -c 512 /dev/urandom >/tmp/block
must sg_write_same --16 --lba=100 --num=50 --in=/tmp/block "$first"
(part /tmp/one 99 1 && for ((n = 0; n < 50; n++)); do cat /tmp/block; done && part /tmp/one 150 1) | there "$first" 99 52
must sg_write_same --10 --lba=160 --num=8 "$first"
must sg_write_same --16 --ndob --lba=168 --num=8 "$first"
must sg_write_same --16 --unmap --lba=1024 --num=512 "$first"
head -c 8k /dev/zero | there "$first" 160 16
head -c 256k /dev/zero | there "$first" 1024 512

# UNMAP of two ranges, and what GET LBA STATUS makes of it.
must sg_unmap --force --lba=1600,1800 --num=64,8 "$first"
(head -c 32k /dev/zero && part /tmp/one 1664 136 && head -c 4k /dev/zero) | there "$first" 1600 208
must sg_get_lba_status --lba=1024 "$first" >/tmp/status
must grep -qi 'deallocated' /tmp/status

# COMPARE AND WRITE, which writes nothing when it finds something else.
(part /tmp/one 8 4 && part /tmp/two 8 4) >/tmp/caw
must sg_compare_and_write --in=/tmp/caw --lba=8 --num=4 "$first"
miscompares sg_compare_and_write --quiet --in=/tmp/caw --lba=8 --num=4 "$first"
part /tmp/two 8 4 | there "$first" 8 4

# VERIFY of the medium, and of what it must hold.
must sg_verify --lba=0 --count=2048 --bpc=512 "$first"
part /tmp/two 8 4 >/tmp/expected
must sg_verify --lba=8 --count=4 --ndo=2048 --in=/tmp/expected "$first"
miscompares sg_verify --16 --lba=9 --count=4 --ndo=2048 --in=/tmp/expected "$first"

# EXTENDED COPY inside a logical unit and from one to another, and its limits.
must sg_copy_results --params "$first" >/dev/null
must sg_xcopy if="$first" of="$first" bs=512 skip=200 seek=4096 count=512
part /tmp/one 200 512 | there "$first" 4096 512
must sg_xcopy if="$second" of="$first" bs=512 skip=0 seek=8192 count=2048
there "$first" 8192 2048 /tmp/two
there "$second" 0 2048 /tmp/two

# Beyond the end is refused, and the session is none the worse.
end=$(blockdev --getsz "$first")
refused sg_verify --lba="$end" --count=1 "$first"
refused sg_write_same --16 --lba="$((end - 1))" --num=2 "$first"
refused sg_unmap --force --lba="$end" --num=1 "$first"
must sg_sync "$first"
no_io_errors
