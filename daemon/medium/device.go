package medium

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"lunar/conf"
)

// BlockDevices is where the kernel tells of block devices, by number.
var BlockDevices = "/sys/dev/block"

// DeviceOf names what the bytes of a volume are on, which other volumes may
// share: the disk of its file system or of itself by its kernel name, the file
// system if that has no disk, the pool of a Ceph cluster, or the volume's own memory. Of a file that is not
// there yet it is where it will be made.
func DeviceOf(v *conf.Volume) string {
	if v.Type == conf.RBDVolume {
		pool, _, _ := strings.Cut(v.Image, "/")
		return "rbd/" + v.Ceph + "/" + pool
	}
	if v.Path == "" {
		return string(v.Type) + "/" + v.Name
	}
	if device, ok := deviceAt(v.Path); ok {
		return device
	}
	return "volume/" + v.Name
}

// deviceAt is false for a path that cannot be looked at.
func deviceAt(path string) (string, bool) {
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return "", false
	}
	s := info.Sys().(*syscall.Stat_t)
	dev := s.Dev
	if info.Mode()&fs.ModeDevice != 0 {
		dev = s.Rdev
	}
	return DiskName(fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))), true
}

// DiskName is the kernel's name of the disk with a number, or that a partition
// with it is on; the number if the kernel knows of no such device.
func DiskName(number string) string {
	link, err := filepath.EvalSymlinks(filepath.Join(BlockDevices, number))
	if err != nil {
		return number
	}
	if _, err := os.Stat(filepath.Join(link, "partition")); err == nil {
		link = filepath.Dir(link)
	}
	return strings.ReplaceAll(filepath.Base(link), "!", "/")
}

// Shared reports whether what a device's name stands for may be used by several servers at once:
// pools of Ceph clusters.
func Shared(device string) bool { return strings.HasPrefix(device, "rbd/") }
