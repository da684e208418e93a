package backstore

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lunar/internal/intent"
)

// atomicUnit is what writes with Atomic are multiples of, in bytes: smaller ones
// would share a block of the medium with neighbours, which a power cut may take
// along.
const atomicUnit = 4096

// openIntents opens the intent log of the volume at path, if it is to have one,
// and does what the log has of writes that a crash has interrupted.
func (v *volume) openIntents(path string) error {
	if path == "" || v.Info().ReadOnly {
		return nil
	}
	fd, err := openRetry(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC)
	if err != nil {
		return fmt.Errorf("intent log %s: %w", path, err)
	}
	if err := syncDirectory(filepath.Dir(path)); err != nil { // or a power cut takes the whole log along
		return fmt.Errorf("intent log %s: %w", path, errors.Join(err, unix.Close(fd)))
	}
	log, redone, dropped, err := intent.Open(&stableFile{fd: fd}, (*intentTarget)(v), v.identity(), v.Info().Size)
	if err != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, unix.Close(fd)))
	}
	if redone > 0 {
		v.log.Info("atomic writes that were interrupted have been completed", "store", v.path, "writes", redone)
	}
	if dropped > 0 {
		v.log.Warn("the intent log had writes for what was in this place before: they are left out", "store", v.path, "log", path, "writes", dropped)
	}
	v.intents, v.intentsFd = log, fd
	v.amend(func(info *Info) {
		info.AtomicUnit = max(atomicUnit, info.BlockSize)
		info.MaxAtomic = intent.MaxBytes
	})
	return nil
}

func (v *volume) closeIntents() error {
	if v.intents == nil {
		return nil
	}
	return unix.Close(v.intentsFd)
}

// identity tells a file from another that takes its place, over a restart of the
// machine too: device numbers do not.
func (v *volume) identity() [2]uint64 {
	if v.device {
		return [2]uint64{}
	}
	return [2]uint64{v.opened.Medium[1], v.opened.Medium[2]}
}

// prepareSlow is prepare for what only workers do.
func (v *volume) prepareSlow(op *Op) {
	switch {
	case v.intents == nil && op.Kind == Wipe:
	case v.intents == nil:
		op.Err = fmt.Errorf("atomic %v on %s: %w", op.Kind, v.path, ErrUnsupported)
	default:
		op.lane.call.verb = intentCall
	}
}

// doIntent makes an intentCall. Its result is that of call.run.
func (v *volume) doIntent(op *Op) int64 {
	err, done := v.intents.Wipe, int64(0)
	if op.Kind == Write {
		err, done = func() error { return v.intents.Write(op.Data, op.Off) }, int64(len(op.Data))
	}
	if err := err(); err != nil {
		v.log.Error("atomic write failed", "store", v.path, "byte", op.Off, "err", err)
		var errno unix.Errno
		if !errors.As(err, &errno) {
			errno = unix.EIO
		}
		return -int64(errno)
	}
	return done
}

// intentTarget is the volume as its intent log sees it.
type intentTarget volume

// Reserve implements intent.Target: a file takes the room that it needs first.
func (v *intentTarget) Reserve(off, n int64) error {
	if v.device {
		return nil
	}
	err := unix.Fallocate(v.fd, unix.FALLOC_FL_KEEP_SIZE, off, n)
	if err == unix.EOPNOTSUPP {
		return nil
	}
	return err
}

// WriteStable implements intent.Target.
func (v *intentTarget) WriteStable(off int64, parts ...[]byte) error {
	return writeStable(v.fd, off, parts)
}

// stableFile is an intent log's file.
type stableFile struct{ fd int }

// ReadAt implements intent.File.
func (f *stableFile) ReadAt(b []byte, off int64) error {
	for len(b) > 0 {
		n, err := unix.Pread(f.fd, b, off)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			clear(b)
			return nil
		}
		b, off = b[max(n, 0):], off+int64(max(n, 0))
	}
	return nil
}

// WriteStable implements intent.File.
func (f *stableFile) WriteStable(off int64, parts ...[]byte) error {
	return writeStable(f.fd, off, parts)
}

// Cut implements intent.File.
func (f *stableFile) Cut() error {
	if err := unix.Ftruncate(f.fd, 0); err != nil {
		return err
	}
	return unix.Fsync(f.fd)
}

// writeStable writes the parts, one behind the other. Where there is no
// RWF_DSYNC, everything of the file is made stable.
func writeStable(fd int, off int64, parts [][]byte) error {
	flags := unix.RWF_DSYNC
	for len(parts) > 0 {
		n, err := unix.Pwritev2(fd, parts, off, flags)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EOPNOTSUPP && flags != 0:
			flags = 0
			continue
		case err != nil:
			return err
		case n == 0:
			return unix.EIO
		}
		off += int64(n)
		for len(parts) > 0 && n >= len(parts[0]) {
			n -= len(parts[0])
			parts = parts[1:]
		}
		if len(parts) > 0 {
			parts[0] = parts[0][n:]
		}
	}
	if flags == 0 {
		return unix.Fdatasync(fd)
	}
	return nil
}
