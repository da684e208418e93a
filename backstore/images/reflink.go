package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pace is how much is shared by one call, which nobody breaks off, and which keeps others from
// writing to the file. What it takes depends on the number of extents. A piece grows while they
// are quick, and shrinks where they are slow.
type pace struct {
	piece       int64         // bytes of the next one
	least, most int64         // of all
	quick, slow time.Duration // that a piece takes
}

// held is for while nobody writes, and a deadline is to be kept; live is for while somebody
// does.
func held() *pace {
	return &pace{piece: 1 << 30, least: 16 << 20, most: 1 << 44, quick: 10 * time.Millisecond, slow: 100 * time.Millisecond}
}

func live() *pace {
	return &pace{piece: 4 << 20, least: 256 << 10, most: 1 << 40, quick: time.Millisecond, slow: 4 * time.Millisecond}
}

// next says how long a piece took.
func (p *pace) next(took time.Duration) {
	switch {
	case took < p.quick:
		p.piece = min(4*p.piece, p.most)
	case took > p.slow:
		p.piece = max(p.piece/4, p.least)
	}
}

// share has parts of the file dst, or all of it (nil), be what src has there, by the same
// blocks. Both are size bytes long. An error of ctx leaves it in part.
func share(ctx context.Context, dst *os.File, src int, size int64, parts []Range, p *pace) error {
	unit := int64(1)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(src, &fs); err == nil {
		unit = max(fs.Bsize, 1)
	}
	if parts == nil {
		parts = []Range{{0, size}}
	}
	for _, part := range parts {
		at, end := part.Off/unit*unit, min(part.Off+part.Len, size)
		for at < end {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("%w at byte %d of %d", err, at, size)
			}
			began, n := time.Now(), min(p.piece, (end-at+unit-1)/unit*unit)
			if err := shareRange(dst, src, at, n, at+n >= size); err != nil {
				return err
			}
			at += n
			p.next(time.Since(began))
		}
	}
	return dst.Truncate(size)
}

// shareRange shares one piece; the last one ends with the file, wherever that is.
func shareRange(dst *os.File, src int, at, n int64, last bool) error {
	r := unix.FileCloneRange{Src_fd: int64(src), Src_offset: uint64(at), Src_length: uint64(n), Dest_offset: uint64(at)}
	if last {
		r.Src_length = 0
	}
	for {
		err := unix.IoctlFileCloneRange(int(dst.Fd()), &r)
		switch {
		case err == unix.EINTR:
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOTTY), errors.Is(err, unix.ENOSYS):
			return fmt.Errorf("%w: %s is on %s, where files cannot share blocks; xfs (made with reflink=1, the default of today's mkfs.xfs) and btrfs can", ErrUnsupported, dst.Name(), systemOf(dst))
		case errors.Is(err, unix.EXDEV):
			return fmt.Errorf("%s: expected a place in the same file system as the volume's file: %w", dst.Name(), err)
		case err != nil:
			return fmt.Errorf("share blocks with %s: %w", dst.Name(), err)
		default:
			return nil
		}
	}
}

// systems are file systems by the number that statfs(2) tells.
var systems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs without reflink", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs",
	unix.NFS_SUPER_MAGIC: "NFS", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.F2FS_SUPER_MAGIC: "f2fs", unix.FUSE_SUPER_MAGIC: "FUSE",
}

func systemOf(f *os.File) string {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return "an unknown file system"
	}
	if name := systems[fs.Type]; name != "" {
		return name
	}
	return fmt.Sprintf("a file system of type %#x", fs.Type)
}

// noCow is FS_NOCOW_FL: btrfs shares blocks only between files that both have it, or both not.
const noCow = 0x00800000

// likeSource gives an empty file what sharing blocks needs it to have.
func likeSource(dst *os.File, src int) {
	flags, err := unix.IoctlGetInt(src, unix.FS_IOC_GETFLAGS)
	if err == nil && flags&noCow != 0 {
		// Where it fails, so does sharing, which says it.
		_ = unix.IoctlSetPointerInt(int(dst.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
}
