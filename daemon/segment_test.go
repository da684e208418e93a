package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/daemon/machine"
)

// memoryDir is a directory of the test's own on tmpfs.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tgtd-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestSegmentDir(t *testing.T) {
	memory, disk := memoryDir(t), "/proc"
	made := filepath.Join(memory, "lunar")
	for range 2 { // made, and found
		if err := machine.MakeSegmentDir(made); err != nil {
			t.Fatal(err)
		}
	}
	if mode := modeOf(t, made); mode != 0o700 {
		t.Errorf("found mode %o, expected 700", mode)
	}
	file, open, link := filepath.Join(memory, "file"), filepath.Join(memory, "open"), filepath.Join(memory, "link")
	writeFile(t, file, "")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o750); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if err := os.Symlink(made, link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		file:                            "expected a directory",
		link:                            "expected a directory",
		open:                            "found mode 0750, expected 0700",
		filepath.Join(disk, "lunar"):    "expected tmpfs or hugetlbfs",
		filepath.Join(memory, "no/dir"): "no such file",
	} {
		if err := machine.MakeSegmentDir(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v, expected %s", dir, err, want)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(made, 1, -1); err != nil {
			t.Fatal(err)
		}
		if err := machine.MakeSegmentDir(made); err == nil || !strings.Contains(err.Error(), "found a directory of user 1") {
			t.Errorf("found %v", err)
		}
	}
}

// TestContainersOwn: memory that ends with a container is told from the machine's.
func TestContainersOwn(t *testing.T) {
	const (
		plain   = "22 28 0:20 / /proc rw - proc proc rw\n31 22 0:25 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,inode64\n28 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		docker  = "800 700 0:50 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/a\n801 800 0:52 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755\n810 801 0:60 / /dev/shm rw,nosuid,nodev,noexec - tmpfs shm rw,size=65536k,inode64\n"
		larger  = "801 800 0:52 / /dev rw - tmpfs tmpfs rw,size=65536k\n810 801 0:60 / /dev/shm rw - tmpfs shm rw,size=8388608k\n"
		host    = "801 800 0:52 / /dev rw - tmpfs tmpfs rw,size=65536k\n810 801 0:25 / /dev/shm rw - tmpfs tmpfs rw,inode64\n"
		volume  = docker + "811 810 0:25 /lunar /dev/shm/lunar rw - tmpfs tmpfs rw,inode64\n"
		covered = docker + "812 801 0:25 / /dev/shm rw - tmpfs tmpfs rw\n"
	)
	for _, test := range []struct {
		mounts, dir string
		own         bool
	}{
		{plain, "/dev/shm/lunar", false}, {docker, "/dev/shm/lunar", true}, {larger, "/dev/shm/lunar", true}, {larger, "/dev/shm", true},
		{host, "/dev/shm/lunar", false}, {volume, "/dev/shm/lunar", false}, {volume, "/dev/shm/lunar2", true}, {covered, "/dev/shm/lunar", false},
		{docker, "/mnt/huge", false}, {docker, "/dev/lunar", true}, {"", "/dev/shm/lunar", false}, {"damaged - \n", "/", false},
	} {
		if why := machine.ContainersOwn(test.mounts, test.dir); (why != "") != test.own {
			t.Errorf("%s in\n%s: found %q, expected %t", test.dir, test.mounts, why, test.own)
		}
	}
}
