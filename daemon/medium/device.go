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
// system if that has no disk, or the volume's own memory. Of a file that is not
// there yet it is where it will be made.
func DeviceOf(v *conf.Volume) string {
	if v.Path == "" {
		return string(v.Type) + "/" + v.Name
	}
	path := v.Path
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return "volume/" + v.Name
	}
	s := info.Sys().(*syscall.Stat_t)
	dev := s.Dev
	if info.Mode()&fs.ModeDevice != 0 {
		dev = s.Rdev
	}
	return DiskName(fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev)))
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

// DevicesOf are the devices of all volumes, by name of volume.
func DevicesOf(cfg *conf.Config) map[string]string {
	devices := map[string]string{}
	for i := range cfg.Volumes {
		devices[cfg.Volumes[i].Name] = DeviceOf(&cfg.Volumes[i])
	}
	return devices
}

// ConfiguredCapacities are what the configuration says that each device can do,
// in tokens/s; 0: nothing. Of what it says of several volumes on one device the
// least counts.
func ConfiguredCapacities(cfg *conf.Config) map[string]int64 {
	own, all := map[string]int64{}, map[string]int64{}
	for volume, device := range DevicesOf(cfg) {
		all[device] = cfg.QoS.Capacity
		if tokens := cfg.QoS.Capacities[volume]; tokens > 0 && (own[device] == 0 || tokens < own[device]) {
			own[device] = tokens
		}
	}
	for device, tokens := range own {
		all[device] = tokens
	}
	return all
}
