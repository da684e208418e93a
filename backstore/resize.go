package backstore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Resizer is a Store whose size can change while it is in use.
type Resizer interface {
	// Resize makes the store size bytes long: what is new reads as zeroes, what
	// lies behind the end is gone. Info tells the new size as soon as an Op may
	// use it; an Op behind the end fails with ErrOutOfRange. After an error the
	// size is what it was. Resize must not be called on an event thread, and the
	// lanes' threads must run: it waits for what they have under way.
	Resize(size int64) error
}

// WriteBack is a Store that acknowledges writes before the medium has them.
type WriteBack interface {
	// Dirty returns how many bytes the medium does not have yet. Close of the
	// Store writes them; if it fails they are still there.
	Dirty() int64
}

// DirtyCloser is a WriteBack store that can be closed although its medium does not take
// what is dirty.
type DirtyCloser interface {
	WriteBack
	// Keeps reports whether what is dirty outlives the Store: whoever opens it again
	// finds it, and writes it.
	Keeps() bool
	// CloseDirty closes the Store, whose lanes are closed, and writes nothing more. What is
	// dirty is lost if discard is set or Keeps is false. It returns how many bytes that
	// is, or how many are kept. After an error it may be called again.
	CloseDirty(discard bool) (dirty int64, err error)
}

// Resize resizes s, or says with ErrUnsupported that s cannot be resized.
func Resize(s Store, size int64) error {
	r, ok := s.(Resizer)
	if !ok {
		return fmt.Errorf("resize %s: %w", s.Info().Describe, ErrUnsupported)
	}
	return r.Resize(size)
}

// Resize implements Resizer. A file grows sparsely or is cut; a device has the
// size that it has, which is read again, and any other is an error.
func (v *volume) Resize(size int64) error {
	v.resizing.Lock()
	defer v.resizing.Unlock()
	if err := v.checkResize(size); err != nil {
		return fmt.Errorf("resize %s: %w", v.path, err)
	}
	count := v.changes.Add()
	defer count.Remove()
	count.Begin()
	defer count.End()
	old := v.Info().Size
	if err := v.resizeTo(old, size); err != nil {
		return fmt.Errorf("resize %s from %d to %d bytes: %w", v.path, old, size, err)
	}
	v.log.Info("backing store resized", "store", v.path, "from", old, "to", size)
	return nil
}

func (v *volume) checkResize(size int64) error {
	info := v.Info()
	unit := max(v.block, int64(info.BlockSize))
	switch {
	case size <= 0:
		return fmt.Errorf("size %d: expected a positive number of bytes", size)
	case size%unit != 0:
		return fmt.Errorf("size %d is %d bytes more than a multiple of %d", size, size%unit, unit)
	case info.ReadOnly && !v.device:
		return ErrReadOnly
	}
	if d := v.damage.Load(); d != nil && d.all {
		return d.err
	}
	return nil
}

func (v *volume) resizeTo(old, size int64) error {
	switch {
	case v.device:
		return v.followDevice(size)
	case size > old:
		if err := v.grow(old, size, false); err != nil {
			return errors.Join(err, unix.Ftruncate(v.fd, old))
		}
		v.setSize(size)
		return nil
	case size < old:
		return v.shrink(old, size)
	}
	return nil
}

// followDevice takes over the size that the device has now.
func (v *volume) followDevice(size int64) error {
	g, err := readGeometry(v.fd)
	if err != nil {
		return err
	}
	if g.size != size {
		return fmt.Errorf("the device has %d bytes: expected that size", g.size)
	}
	v.setSize(size)
	return nil
}

// shrink cuts the file when nothing behind the new end is under way any more:
// a write there would make the file longer again, and a read would find it too
// short.
func (v *volume) shrink(old, size int64) error {
	v.setSize(size)
	v.counters.Wait()
	if err := unix.Ftruncate(v.fd, size); err != nil {
		v.setSize(old)
		return err
	}
	// What is gone is gone, whether or not a power cut would undo it.
	if err := v.settle(); err != nil {
		v.distrust(err)
	}
	return nil
}

// settle makes the file's new length stable. The kernel brings the page in which a length
// ends into its cache to zero the rest of it, and reports EIO, once, if a direct write
// meets it there; the write was done and has reported its own end.
func (v *volume) settle() error {
	err := unix.Fsync(v.fd)
	if v.direct && errors.Is(err, unix.EIO) {
		err = unix.Fsync(v.fd)
	}
	return err
}

// grow makes a file longer, and that stable unless somebody else does.
func (v *volume) grow(from, to int64, settled bool) error {
	err := unix.Ftruncate(v.fd, to)
	if err == nil && !settled {
		if err = v.settle(); err != nil {
			v.distrust(err)
		}
	}
	if err != nil {
		return fmt.Errorf("grow from %d to %d bytes: %w", from, to, err)
	}
	if from == 0 && !settled { // a process that was killed may have made the file, and not its entry stable
		// Where the directory cannot be read, somebody else has made the file.
		if err := syncDirectory(filepath.Dir(v.path)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if from == 0 {
		v.log.Info("backing file made, without taking space", "store", v.path, "size", to)
	} else {
		v.log.Info("backing file grown, without taking space", "store", v.path, "from", from, "to", to)
	}
	return nil
}
