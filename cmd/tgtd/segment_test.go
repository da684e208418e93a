package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		if err := makeSegmentDir(made); err != nil {
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
		if err := makeSegmentDir(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v, expected %s", dir, err, want)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(made, 1, -1); err != nil {
			t.Fatal(err)
		}
		if err := makeSegmentDir(made); err == nil || !strings.Contains(err.Error(), "found a directory of user 1") {
			t.Errorf("found %v", err)
		}
	}
}
