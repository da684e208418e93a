package backstore

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrTruncated says that a file has become shorter than the volume in it. The
// bytes that are missing are lost: reading them as zeroes would hide that.
var ErrTruncated = errors.New("the backing file was truncated")

// classes gives the errnos that mean more than "the medium failed" their
// sentinel.
var classes = map[unix.Errno]error{
	unix.ENOSPC:     ErrNoSpace,
	unix.EDQUOT:     ErrNoSpace,
	unix.EFBIG:      ErrNoSpace,
	unix.ENXIO:      ErrGone,
	unix.ENODEV:     ErrGone,
	unix.ESTALE:     ErrGone,
	unix.ENOTCONN:   ErrGone,
	unix.ESHUTDOWN:  ErrGone,
	unix.ENOMEDIUM:  ErrGone,
	unix.EROFS:      ErrReadOnly,
	unix.EOPNOTSUPP: ErrUnsupported,
	unix.ENOTTY:     ErrUnsupported,
	unix.ENOSYS:     ErrUnsupported,
}

// classify wraps errno so that errors.Is finds both it and its sentinel.
func classify(errno unix.Errno) error {
	if class := classes[errno]; class != nil {
		return fmt.Errorf("%w: %w", class, errno)
	}
	return errno
}
