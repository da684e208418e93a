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

// Classify wraps err, if an errno in it means more than "the medium failed", so
// that errors.Is finds its sentinel too. Any other err comes back as it is.
func Classify(err error) error {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return err
	}
	if class := classes[errno]; class != nil {
		return fmt.Errorf("%w: %w", class, err)
	}
	return err
}
