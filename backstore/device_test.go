package backstore

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIdentityOfDevices: what sysfs says of devices, by what lasts over a boot.
func TestIdentityOfDevices(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"devices/sda/device/wwid": "naa.5\n", "devices/sda/sda1/partition": "1\n", "devices/sda/sda1/start": "2048\n",
		"devices/dm-3/dm/uuid": "\n", "devices/dm-3/dm/name": "vault\n",
		"devices/mmcblk0/device/cid": "15\n", "devices/mmcblk0boot1/device/cid": "15\n",
		"devices/mmcblk0/mmcblk0p1/partition": "1\n", "devices/mmcblk0/mmcblk0p1/start": "64\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "block"), 0o700); err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]string{
		"sda":      "WWN naa.5",
		"sda/sda1": "partition from sector 2048 of WWN naa.5",
		"dm-3":     "device-mapper name vault",

		"mmcblk0":           "card 15",
		"mmcblk0boot1":      "card 15 boot1",
		"mmcblk0/mmcblk0p1": "partition from sector 64 of card 15",
	} {
		link := filepath.Join(dir, "block", filepath.Base(device))
		if err := os.Symlink(filepath.Join("..", "devices", device), link); err != nil {
			t.Fatal(err)
		}
		if got := deviceIdentity(link, 0); got != want {
			t.Errorf("%s: found %q, expected %q", device, got, want)
		}
	}
}

// TestLogName: files in snapshots of btrfs, which have the inodes and times of birth of
// their origins, have logs of their own; what one kernel alone tells makes no difference.
func TestLogName(t *testing.T) {
	file := func(system string) string { return Identity{System: system, Inode: 257, Birth: 9}.logName() }
	if file("fsid 1") == file("fsid 2") {
		t.Error("one log for files of two subvolumes")
	}
	if file("uuid 1") != file("link 1") {
		t.Error("two logs for a file on a file system that two kernels know in two ways")
	}
}
