package uring

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
)

// locked opens the file and tries to lock it.
func locked(t *testing.T, path string) (fd int, err error) {
	t.Helper()
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return fd, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
}

// The lock of a file that a ring holds outlives the descriptor, and ends with
// the ring, or when it is given up.
func TestHeldFileKeepsItsLock(t *testing.T) {
	r := newRing(t, 8)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	for _, path := range []string{first, second} {
		fd, err := locked(t, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Hold(fd); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		other, err := locked(t, path)
		if err != unix.EWOULDBLOCK {
			t.Errorf("the lock of a file that is held: %v", err)
		}
		unix.Close(other)
	}
	free(t, first) // the second took its place
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	free(t, second)
}

// free waits for a lock: the kernel lets go of files when it comes to it.
func free(t *testing.T, path string) {
	t.Helper()
	eventually.Holds(t, "the lock of a file that nobody holds is released", func() bool {
		fd, err := locked(t, path)
		unix.Close(fd)
		return err == nil
	})
}
