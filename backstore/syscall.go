package backstore

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openRetry is open(2), which a signal may interrupt.
func openRetry(path string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Open(path, flags, 0o600); err != unix.EINTR {
			return fd, err
		}
	}
}

func access(readOnly bool) int {
	if readOnly {
		return unix.O_RDONLY
	}
	return unix.O_RDWR
}

// syncNew makes a file that was just created stable, then its directory entry. A file
// system without a journal writes no inode with the entry: a power cut would leave an
// entry of nothing, which repair removes.
func syncNew(fd int, path string) error {
	if err := unix.Fsync(fd); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return syncDirectory(filepath.Dir(path))
}

func syncDirectory(dir string) error {
	fd, err := openRetry(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err = errors.Join(unix.Fsync(fd), unix.Close(fd)); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// allocate is fallocate(2), which signals interrupt on some file systems.
func allocate(fd int, mode uint32, off, n int64) error {
	for {
		if err := unix.Fallocate(fd, mode, off, n); err != unix.EINTR {
			return err
		}
	}
}
