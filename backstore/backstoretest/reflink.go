package backstoretest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Reflink mounts a new file system whose files can share blocks, xfs or btrfs, until the test
// ends, and returns its directory. The test is skipped where that is not possible.
func Reflink(t testing.TB, system string) (dir string) {
	t.Helper()
	mkfs, err := exec.LookPath("mkfs." + system)
	if err != nil {
		mkfs = "/usr/sbin/mkfs." + system
	}
	if _, err := os.Stat(mkfs); err != nil {
		t.Skipf("no program makes a file system with shared blocks here: %v", err)
	}
	const size = 512 << 20                              // of which mkfs.xfs wants 300 MiB
	memory, err := os.MkdirTemp("/dev/shm", "reflink-") // syncs of a busy disk take seconds
	if err != nil {
		memory = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(memory) })
	device := LoopDevice{File: filepath.Join(memory, "disk"), Size: size}.Attach(t)
	if said, err := exec.Command(mkfs, "-q", device).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", mkfs, err, said)
	}
	dir = t.TempDir()
	if err := unix.Mount(device, dir, system, 0, ""); err != nil {
		t.Skipf("%s cannot be mounted here: %v", system, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Fill fills the file system of a directory, until the test ends or the returned function is
// called.
func Fill(t testing.TB, dir string) (free func()) {
	t.Helper()
	f, err := os.CreateTemp(dir, "fill-")
	if err != nil {
		t.Fatal(err)
	}
	free = func() {
		f.Close()
		if err := os.Remove(f.Name()); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
	t.Cleanup(free)
	at, part := int64(0), int64(64<<20)
	for part >= 4096 {
		if err := unix.Fallocate(int(f.Fd()), 0, at, part); err == unix.ENOSPC {
			part /= 2
		} else if err != nil && err != unix.EINTR {
			t.Fatal(err)
		} else if err == nil {
			at += part
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return free
}
