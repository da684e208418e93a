package medium

import (
	"io/fs"
	"log/slog"
	"os"

	"lunar/backstore"
	"lunar/conf"
)

// isDevice reports whether a path leads to a block device.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == fs.ModeDevice
}

// OpenBeside opens a file or device that a volume needs beside its data. A file that is
// not there is made with size bytes.
func OpenBeside(path string, size int64, direct bool, log *slog.Logger) (backstore.Store, error) {
	if isDevice(path) {
		return backstore.OpenBlock(backstore.BlockConfig{Path: path, Buffered: !direct, Logger: log})
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		size = 0 // as it is
	}
	return OpenFile(&conf.Volume{Name: path, MayBuffer: direct}, backstore.FileConfig{Path: path, Size: size, Direct: direct, Logger: log}, backstore.OpenFile)
}

// OpenMember opens a member of a mirror, past the page cache where that is possible. A
// file that is not there is made if the volume has a size.
func OpenMember(v *conf.Volume, path string, log *slog.Logger) (backstore.Store, error) {
	if isDevice(path) {
		return backstore.OpenBlock(backstore.BlockConfig{Path: path, BlockSize: v.BlockSize, Logger: log})
	}
	return OpenFile(&conf.Volume{Name: v.Name, MayBuffer: true}, backstore.FileConfig{
		Path: path, Size: int64(v.Size), BlockSize: v.BlockSize, Direct: true, Logger: log,
	}, backstore.OpenFile)
}
