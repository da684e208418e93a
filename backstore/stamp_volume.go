package backstore

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Opened implements Stamper.
func (v *volume) Opened() (Stamp, bool) { return v.opened, v.opened != Stamp{} }

// Medium returns the Identity as words of a Stamp, also where the kernel does not count
// writes and there is no Stamp.
func (v *volume) Medium() [3]uint64 { return v.identity.Medium() }

// Stamp implements Stamper. The medium is made of the Identity, the state of a file of
// size, mtime and ctime. Of a block device the kernel counts what is
// written and discarded by this host and since the device came; writes of others
// to the same disk, or through a device above or below, are not seen.
func (v *volume) Stamp() (Stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(v.fd, &st); err != nil {
		return Stamp{}, fmt.Errorf("stamp of %s: %w", v.path, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		s, err := v.stampBlock(st.Rdev)
		if err != nil {
			err = fmt.Errorf("stamp of %s: %w", v.path, err)
		}
		return s, err
	}
	return stampOfFile(v.identity, &st), nil
}

func stampOfFile(id Identity, st *unix.Stat_t) Stamp {
	return Stamp{
		Medium: id.Medium(),
		State:  [3]uint64{uint64(st.Size), uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano())},
	}
}

// stampBlock writes back what the kernel caches, which would be counted later: of
// others, too, before the first one. Direct I/O leaves nothing there.
func (v *volume) stampBlock(dev uint64) (Stamp, error) {
	info := v.Info()
	if !info.ReadOnly && !(v.direct && v.opened != Stamp{}) {
		if err := unix.Fdatasync(v.fd); err != nil {
			v.distrust(err)
			return Stamp{}, err
		}
	}
	q := queueOf(dev)
	if q.text("iostats") == "0" {
		return Stamp{}, fmt.Errorf("the kernel does not count writes to it (iostats is 0): %w", ErrUnsupported)
	}
	text, err := os.ReadFile(sysBlock(dev) + "/stat")
	if err != nil {
		return Stamp{}, err
	}
	written, discarded, err := parseBlockStat(string(text))
	if err != nil {
		return Stamp{}, err
	}
	return Stamp{
		Medium: v.identity.Medium(),
		State:  [3]uint64{uint64(q.number("../diskseq")), written, discarded},
	}, nil
}

// Columns of a block device's statistics in sysfs, in sectors of 512 bytes; old
// kernels do not count discards.
const (
	writtenColumn   = 6
	discardedColumn = 13
)

func parseBlockStat(text string) (written, discarded uint64, err error) {
	columns := strings.Fields(text)
	if len(columns) <= writtenColumn {
		return 0, 0, fmt.Errorf("statistics %q: expected at least %d columns", text, writtenColumn+1)
	}
	if written, err = strconv.ParseUint(columns[writtenColumn], 10, 64); err != nil {
		return 0, 0, err
	}
	if len(columns) > discardedColumn {
		discarded, err = strconv.ParseUint(columns[discardedColumn], 10, 64)
	}
	return written, discarded, err
}

// Watch implements Watched.
func (v *volume) Watch(word *atomic.Uint64) { v.changes.Watch(word) }

// Quiet implements Watched.
func (v *volume) Quiet() (begun uint64, quiet bool) { return v.changes.Quiet() }

// Exact implements Watched.
func (v *volume) Exact() bool {
	if v.device {
		return v.direct
	}
	return v.local
}

// isLocal reports whether an open file has times by this host's clock, and exact ones.
func isLocal(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && slices.Contains(local, uint32(fs.Type))
}

// local are the file systems whose times are this host's, in nanoseconds or ticks. All
// others may be in the network, or keep times in seconds.
var local = []uint32{
	unix.EXT4_SUPER_MAGIC /* and ext2, ext3 */, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC,
	0x2fc12fc1 /* ZFS */, 0xca451a4e, /* bcachefs */
}
