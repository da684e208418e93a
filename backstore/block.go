package backstore

import (
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"
)

// BlockConfig says how to open a block device that holds a volume.
type BlockConfig struct {
	Path      string
	BlockSize int          // of the logical unit, in bytes; 0 is that of the device
	Buffered  bool         // through the page cache instead of O_DIRECT
	ReadOnly  bool         // also taken when the device is read-only
	Sync      bool         // every change is on stable media before it is acknowledged
	Intents   Intents      // of writes with Atomic
	Logger    *slog.Logger // nil is slog.Default
	// Before hears of the store as it was found, before opening changes anything of it;
	// its error ends the opening. May be nil.
	Before func(Watched) error
}

// OpenBlock opens a block device as a Store of the device's size. O_EXCL makes
// the kernel refuse a device that is mounted, part of a RAID or volume group,
// or served already.
func OpenBlock(c BlockConfig) (Store, error) {
	v, err := openBlock(c)
	if err != nil {
		return nil, fmt.Errorf("block store %s: %w", c.Path, err)
	}
	return v, nil
}

func openBlock(c BlockConfig) (*volume, error) {
	var st unix.Stat_t
	if err := unix.Stat(c.Path, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return nil, errors.New("not a block device (a regular file takes a file store)")
	}
	fd, readOnly, err := openExclusive(c.Path, c.ReadOnly)
	if err != nil {
		return nil, err
	}
	v := newVolume(fd, c.Path, c.Sync, c.Logger)
	if readOnly != c.ReadOnly {
		v.log.Info("block device is read-only", "store", c.Path)
		c.ReadOnly = true
	}
	if err := v.setUpBlock(c, queueOf(st.Rdev)); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	if err := v.meetBlock(c, &st); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	if err := v.openIntents(c.Intents); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return v, nil
}

// meetBlock finds out which device it is and what state it is in.
func (v *volume) meetBlock(c BlockConfig, st *unix.Stat_t) (err error) {
	v.identity = identify(v.fd, st)
	if v.opened, err = v.stampBlock(st.Rdev); err != nil {
		v.log.Info("nothing tells whether somebody else writes to a block device", "store", c.Path, "err", err)
	}
	if c.Before == nil {
		return nil
	}
	return c.Before(v)
}

// openExclusive opens the device for reading alone if it is read-only, which
// kernels tell by EROFS or, like a lack of rights, by EACCES.
func openExclusive(path string, readOnly bool) (fd int, asReadOnly bool, err error) {
	fd, err = openRetry(path, access(readOnly)|unix.O_EXCL|unix.O_CLOEXEC)
	switch {
	case err == unix.EBUSY:
		return -1, false, fmt.Errorf("in use: it is mounted, part of another device, or served already: %w", err)
	case !readOnly && (err == unix.EROFS || err == unix.EACCES):
		return openReadOnly(path, err)
	}
	return fd, readOnly, err
}

// openReadOnly returns the reason of the refusal unless it is the device.
func openReadOnly(path string, refusal error) (int, bool, error) {
	fd, _, err := openExclusive(path, true)
	if err != nil {
		return -1, false, err
	}
	if g, err := readGeometry(fd); err != nil || !g.readOnly {
		return -1, false, errors.Join(refusal, err, unix.Close(fd))
	}
	return fd, true, nil
}

func (v *volume) setUpBlock(c BlockConfig, q queue) error {
	g, err := readGeometry(v.fd)
	if err != nil {
		return err
	}
	if g.size == 0 {
		return fmt.Errorf("the device has no medium or no size: %w", ErrGone)
	}
	block := g.logical
	if c.BlockSize != 0 {
		block = int64(c.BlockSize)
	}
	if block%g.logical != 0 {
		return fmt.Errorf("the device has blocks of %d bytes, the block size is %d: expected a multiple", g.logical, block)
	}
	if err := checkSize(g.size, block); err != nil {
		return err
	}
	v.device, v.block = true, block
	v.info.Store(&Info{Size: g.size})
	unit, err := v.setFlags(!c.Buffered, q, block)
	if err != nil {
		return err
	}
	v.describeBlock(c, g, q, max(unit, int(g.logical)))
	v.zeroes, err = zeroPages()
	return err
}

// describeBlock fills Info. The kernel promises zeroes after punching a hole,
// which it does where the device can zero by itself; else a discard is a hint
// with no promise.
func (v *volume) describeBlock(c BlockConfig, g geometry, q queue, unit int) {
	info := Info{
		Size: g.size, BlockSize: unit, PhysicalBlock: int(g.physical),
		VolatileCache: !c.Sync && (c.Buffered || q.text("write_cache") != "write through"),
		ReadOnly:      c.ReadOnly || g.readOnly, Rotational: q.number("rotational") == 1,
		Describe: "block " + v.path,
	}
	if !info.ReadOnly && q.number("discard_max_bytes") > 0 {
		info.Discard, info.Thin = true, true
		info.DiscardGran = int(max(q.number("discard_granularity"), g.logical))
		info.DiscardZeroes = q.number("write_zeroes_max_bytes") > 0
	}
	v.trims = !info.DiscardZeroes
	v.info.Store(&info)
}
