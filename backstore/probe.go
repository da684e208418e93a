package backstore

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// maxPhysical bounds the physical block of a file, in bytes: network file
// systems give their transfer size for a block.
const maxPhysical = 64 << 10

// probeFile fills Info and switches to direct I/O if asked to.
func (v *volume) probeFile(c FileConfig, st *unix.Stat_t) error {
	var sfs unix.Statfs_t
	if err := unix.Fstatfs(v.fd, &sfs); err != nil {
		return fmt.Errorf("statfs: %w", err)
	}
	v.memory = sfs.Type == unix.TMPFS_MAGIC || sfs.Type == unix.RAMFS_MAGIC
	if c.Direct && v.memory {
		v.log.Info("direct I/O means nothing on a file system in memory", "store", v.path)
	}
	q := queueOf(st.Dev)
	unit, err := v.setFlags(c.Direct && !v.memory, q, blockSize(c.BlockSize))
	if err != nil {
		return err
	}
	info := Info{
		Size: v.info.Load().Size, BlockSize: unit,
		PhysicalBlock: int(min(max(sfs.Bsize, blockSize(c.BlockSize)), maxPhysical)),
		VolatileCache: !c.Sync && !c.ReadOnly, ReadOnly: c.ReadOnly,
		Rotational: q.number("rotational") == 1, Describe: "file " + v.path,
	}
	if !c.ReadOnly && v.punches(info.Size) {
		info.Discard, info.DiscardGran, info.DiscardZeroes, info.Thin = true, int(sfs.Bsize), true, true
	}
	v.info.Store(&info)
	v.zeroes, err = zeroPages()
	return err
}

// setFlags ends non-blocking mode, in which the ring would not wait for data,
// turns direct I/O on if asked to, and returns the unit of I/O in bytes.
func (v *volume) setFlags(direct bool, q queue, block int64) (unit int, err error) {
	flags, err := unix.FcntlInt(uintptr(v.fd), unix.F_GETFL, 0)
	if err != nil {
		return 0, fmt.Errorf("get file flags: %w", err)
	}
	flags &^= unix.O_NONBLOCK
	if direct {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(uintptr(v.fd), unix.F_SETFL, flags)
	if err == unix.EINVAL && direct {
		return 0, fmt.Errorf("the file system has no direct I/O: %w", err)
	}
	if err != nil {
		return 0, fmt.Errorf("set file flags: %w", err)
	}
	if v.direct = direct; !direct {
		return 1, nil
	}
	return v.directUnit(q, block)
}

// directUnit returns the unit of direct I/O in bytes.
func (v *volume) directUnit(q queue, block int64) (int, error) {
	memory, offset := directAlignment(v.fd, q)
	return int(offset), checkDirect(memory, offset, block, v.info.Load().Size)
}

// checkDirect checks that our buffers, the logical blocks and the size are
// multiples of what direct I/O demands of memory and offsets, all in bytes.
func checkDirect(memory, offset, block, size int64) error {
	switch {
	case offset == 0:
		return errors.New("the file system has no direct I/O for this file")
	case memory > pageSize:
		return fmt.Errorf("direct I/O needs memory aligned to %d bytes, expected at most %d", memory, pageSize)
	case block%offset != 0:
		return fmt.Errorf("direct I/O works in units of %d bytes, the block size is %d: use a block size of %d, or no direct I/O", offset, block, offset)
	case size%offset != 0:
		return fmt.Errorf("direct I/O works in units of %d bytes, the size %d is %d bytes more than a multiple", offset, size, size%offset)
	}
	return nil
}

// directAlignment asks the kernel, from Linux 6.1 on, or goes by the device. Where a file of
// xfs shares blocks with another one, such as a snapshot, the kernel asks for whole blocks of
// the file system in writes, but takes others by way of the page cache; what it asks for in
// reads is what would fail.
func directAlignment(fd int, q queue) (memory, offset int64) {
	var sx unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN|unix.STATX_DIO_READ_ALIGN, &sx)
	switch {
	case err != nil || sx.Mask&unix.STATX_DIOALIGN == 0:
	case sx.Mask&unix.STATX_DIO_READ_ALIGN != 0 && isXFS(fd):
		return int64(sx.Dio_mem_align), int64(sx.Dio_read_offset_align)
	default:
		return int64(sx.Dio_mem_align), int64(sx.Dio_offset_align)
	}
	if n := q.number("logical_block_size"); n > 0 {
		return n, n
	}
	return pageSize, pageSize
}

func isXFS(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.XFS_SUPER_MAGIC
}

// bounces reports whether direct writes of a logical block go by way of the page cache now.
func (v *volume) bounces() bool {
	var sx unix.Statx_t
	err := unix.Statx(v.fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &sx)
	return err == nil && sx.Mask&unix.STATX_DIOALIGN != 0 && v.block%max(int64(sx.Dio_offset_align), 1) != 0
}

// punches tries to punch a hole behind the end, where there is nothing to lose. Some
// file systems (XFS, Btrfs, newer ext4) change ctime and mtime nevertheless.
func (v *volume) punches(size int64) bool {
	err := allocate(v.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, (size+pageSize-1)&^(pageSize-1), pageSize)
	if err != nil {
		v.lacks.Or(uint32(punchHole))
	}
	return err == nil
}
