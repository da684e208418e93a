package medium

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"lunar/backstore"
	"lunar/backstore/gotgtstore"
	"lunar/conf"

	"golang.org/x/sys/unix"
)

// Open opens the volume's store. That of a volume with write: sync is as any other: its logical unit has
// each write made stable, until it is told otherwise.
//
// before hears of a file or device that was found; it may be nil.
func Open(v *conf.Volume, intents backstore.Intents, log *slog.Logger, before func(backstore.Watched) error) (backstore.Store, error) {
	switch v.Type {
	case conf.FileVolume:
		return OpenFile(v, backstore.FileConfig{
			Path: v.Path, Size: int64(v.Size), BlockSize: v.BlockSize,
			Direct: v.Direct, ReadOnly: v.ReadOnly, Intents: intents, Logger: log, Before: before,
		}, backstore.OpenFile)
	case conf.BlockVolume:
		return backstore.OpenBlock(backstore.BlockConfig{
			Path: v.Path, BlockSize: v.BlockSize,
			Buffered: !v.Direct, ReadOnly: v.ReadOnly, Intents: intents, Logger: log, Before: before,
		})
	case conf.RAMVolume:
		return backstore.NewRAM(int64(v.Size), v.BlockSize)
	case conf.NullVolume:
		return backstore.NewNull(int64(v.Size), v.BlockSize)
	case conf.GotgtVolume:
		return gotgtstore.Open(string(v.Driver), backstore.FileConfig{
			Path: v.Path, Size: int64(v.Size), BlockSize: v.BlockSize,
			ReadOnly: v.ReadOnly, Intents: intents, Logger: log, Before: before,
		})
	}
	return nil, fmt.Errorf("found type %q, expected file, block, ram, null or gotgt, for the others are opened by their members, or in a cluster", v.Type)
}

// OpenFile does without direct I/O where the file system has none and the
// configuration does not insist on it. open is backstore.OpenFile but in tests.
func OpenFile(v *conf.Volume, c backstore.FileConfig, open func(backstore.FileConfig) (backstore.Store, error)) (backstore.Store, error) {
	store, refused := open(c)
	if refused == nil || !v.MayBuffer {
		return store, refused
	}
	c.Direct = false
	store, err := open(c)
	if err != nil {
		return nil, refused // it has another reason
	}
	c.Logger.Warn("volume without direct I/O: the page cache holds its data besides the block cache", "volume", v.Name, "reason", refused)
	return store, nil
}

// Path is how the configuration names a volume's file or device, or its image; empty if
// it has none. Links are kept: those below /dev/disk/by-id say which device is
// meant, and what they lead to changes.
func Path(v *conf.Volume) string {
	switch {
	case v.Type == conf.RBDVolume:
		return "rbd:" + v.Image
	case v.Path == "":
		return ""
	}
	return filepath.Clean(v.Path)
}

// Same reports whether two paths lead to the same file or device.
func Same(a, b string) bool {
	one, is1 := KeyOf(a)
	two, is2 := KeyOf(b)
	return is1 && is2 && one == two
}

// SameDevice reports whether two names are of one device: udev makes them anew.
func SameDevice(a, b fs.FileInfo) bool {
	one, ok1 := a.Sys().(*syscall.Stat_t)
	two, ok2 := b.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && one.Mode&syscall.S_IFMT == syscall.S_IFBLK && two.Mode&syscall.S_IFMT == syscall.S_IFBLK && one.Rdev == two.Rdev
}

// FollowedSize is the size that the file or device of a volume has, or the smaller member
// of a mirror, if the volume is to be as large as that.
func FollowedSize(v *conf.Volume) (bytes int64, ok bool) {
	if v.Size > 0 {
		return 0, false
	}
	for i, path := range pathsOf(v) { // the smaller member of a mirror
		one, err := SizeAt(path)
		if err != nil || one <= 0 {
			return 0, false
		}
		if i == 0 || one < bytes {
			bytes = one
		}
	}
	return bytes, bytes > 0
}

// SizeAt is how long a file or device is now, in bytes.
func SizeAt(path string) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Seek(0, io.SeekEnd)
}
