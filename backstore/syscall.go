package backstore

import (
	"errors"
	"fmt"

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
