package backstore

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Opened implements Stamper.
func (v *volume) Opened() (Stamp, bool) { return v.opened, v.opened != Stamp{} }

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

// birthOf returns a time in nanoseconds, 0 if it is not known. A file that takes
// the place of another often gets its inode number.
func birthOf(fd int) uint64 {
	var sx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &sx); err != nil || sx.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return uint64(sx.Btime.Sec)*1e9 + uint64(sx.Btime.Nsec)
}

// stampBlock writes back what the kernel caches, which would be counted later: of
// others, too, before the first one. Direct I/O leaves nothing there.
func (v *volume) stampBlock(dev uint64) (Stamp, error) {
	info := v.Info()
	if !info.ReadOnly && !(v.direct && v.opened != Stamp{}) {
		if err := unix.Fdatasync(v.fd); err != nil {
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
