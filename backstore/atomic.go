package backstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lunar/internal/durable"
	"lunar/internal/intent"
)

// atomicUnit is what writes with Atomic are multiples of, in bytes: smaller ones
// would share a block of the medium with neighbours, which a power cut may take
// along.
const atomicUnit = 4096

// Intents say where a store has the log that Ops with Atomic need, and what becomes
// of writes that a crash has interrupted.
type Intents struct {
	Dir    string    // of the logs, each of which goes by its store's Identity; empty: there are none
	Marks  string    // the directory of their marks; empty: they have none
	Before string    // the log of versions that had it by the path of the store; it is completed once, and removed
	From   *Identity // a store whose place this one has taken: its writes are for this one, too
	Forget bool      // what was interrupted is given up

	Batch *durable.Batch // makes a new store, new logs and marks stable; nil: at once
}

// Log is the path of a store's log.
func (i Intents) Log(id Identity) string { return filepath.Join(i.Dir, id.logName()) }

// Mark is the mark of a store's log.
func (i Intents) Mark(id Identity) durable.Mark { return i.mark(i.Log(id)) }

func (i Intents) mark(log string) durable.Mark {
	if i.Marks == "" {
		return ""
	}
	return durable.Mark(filepath.Join(i.Marks, filepath.Base(log)))
}

// Lost reports whether a store had a log and has none.
func (i Intents) Lost(id Identity) bool {
	return durable.Absent(i.Log(id)) && i.Mark(id).There()
}

// Interrupted returns how many writes to a store were interrupted, as far as its log
// in a directory knows.
func Interrupted(dir string, id Identity) (int, error) {
	return pending(Intents{Dir: dir}.Log(id), nil)
}

func pending(path string, target intent.Target) (int, error) {
	fd, err := durable.Descriptor(path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("intent log %s: %w", path, err)
	}
	n, err := intent.Pending(&stableFile{fd: fd}, target)
	return n, errors.Join(err, unix.Close(fd))
}

// past is a log that is not used any more, but may have interrupted writes.
type past struct {
	path   string
	medium [2]uint64
	mode   intent.Mode
}

// pasts are those of versions before, and of a store whose place this one has taken.
func (v *volume) pasts(i Intents) (all []past) {
	mode, id := intent.Complete, v.identity
	if i.Forget {
		mode = intent.Forget
	}
	if i.Before != "" {
		medium := [2]uint64{}
		if id.Device == "" {
			medium = [2]uint64{id.Inode, id.Birth}
		}
		all = append(all, past{i.Before, medium, mode})
	}
	if id.Device == "" && id.Birth != 0 { // of when the kernel did not tell the birth
		id.Birth = 0
		all = append(all, past{i.Log(id), id.key(), mode})
		id = v.identity
	}
	if i.From != nil && i.Log(*i.From) != i.Log(id) {
		all = append(all, past{i.Log(*i.From), id.key(), max(mode, intent.Move)})
	}
	return all
}

// openIntents opens the intent log of the volume, if it is to have one, and does what
// it has of writes that a crash has interrupted.
func (v *volume) openIntents(i Intents) error {
	if i.Dir == "" {
		return nil
	}
	own := past{i.Log(v.identity), v.identity.key(), intent.Complete}
	if i.Forget {
		own.mode = intent.Forget
	}
	if v.Info().ReadOnly && !i.Forget {
		if err := v.nothingPending(append(v.pasts(i), own)); err != nil || !durable.Absent(own.path) {
			return err
		}
		return i.mark(own.path).Remove() // who opens a store without its log has judged that
	}
	var o intent.Outcome
	for _, p := range v.pasts(i) {
		if err := v.finish(i, p, &o); err != nil {
			return err
		}
	}
	if v.Info().ReadOnly {
		return v.finish(i, own, &o)
	}
	log, fd, err := v.openLog(i, own, &o)
	if err != nil {
		return err
	}
	if err := i.Batch.Mark(i.mark(own.path)); err != nil {
		return fmt.Errorf("intent log %s: %w", own.path, errors.Join(err, unix.Close(fd)))
	}
	if o != (intent.Outcome{}) {
		v.log.Warn("atomic writes were interrupted", "store", v.path, "completed", o.Completed, "not begun", o.Unbegun, "given up", o.Forgotten)
	}
	v.intents, v.intentsFd = log, fd
	v.amend(func(info *Info) {
		info.AtomicUnit = max(atomicUnit, info.BlockSize)
		info.MaxAtomic = intent.MaxBytes
	})
	return nil
}

// Contestable is a store with a log of Ops with Atomic.
type Contestable interface {
	// Contested returns why the store, when it has size bytes, would be refused for
	// writes that a crash has interrupted. It changes nothing, and can be asked in Before.
	Contested(i Intents, readOnly bool, size int64) error
}

// Contested implements Contestable.
func (v *volume) Contested(i Intents, readOnly bool, size int64) error {
	own := past{i.Log(v.identity), v.identity.key(), intent.Complete}
	if i.Forget || i.Dir == "" {
		return nil
	}
	logs := append(v.pasts(i), own)
	if readOnly {
		return v.nothingPending(logs)
	}
	for _, p := range logs {
		if err := v.contested(p, size); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
	}
	return nil
}

func (v *volume) contested(p past, size int64) error {
	fd, err := openRetry(p.path, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("intent log: %w", err)
	}
	return errors.Join(intent.Judge(&stableFile{fd: fd}, (*intentTarget)(v), p.medium, size, p.mode), unix.Close(fd))
}

// nothingPending refuses a store that is read-only and has part of a write: nobody can
// complete it.
func (v *volume) nothingPending(logs []past) error {
	for _, p := range logs {
		n, err := pending(p.path, (*intentTarget)(v))
		if err == nil && n > 0 {
			err = fmt.Errorf("found %d interrupted atomic writes in %s: open it for writing once, so that they are completed: %w", n, p.path, intent.ErrPending)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish does what a log has, and removes it with its mark.
func (v *volume) finish(i Intents, p past, o *intent.Outcome) error {
	if _, err := os.Stat(p.path); err != nil {
		return i.mark(p.path).Remove() // there is none
	}
	_, fd, err := v.openLog(i, p, o)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Close(fd), i.mark(p.path).Remove()); err != nil {
		return err
	}
	return os.Remove(p.path)
}

// openLog adds what it has done to o.
func (v *volume) openLog(i Intents, p past, o *intent.Outcome) (*intent.Log, int, error) {
	stable := i.mark(p.path).There() && !durable.Absent(p.path) // as it was when the mark was made
	fd, err := durable.Descriptor(p.path, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, -1, fmt.Errorf("intent log %s: %w", p.path, err)
	}
	var done intent.Outcome
	var log *intent.Log
	if err := lockLog(fd); err != nil {
		return nil, -1, fmt.Errorf("intent log %s: %w", p.path, errors.Join(err, unix.Close(fd)))
	}
	if !stable {
		err = i.Batch.Made(fd, p.path) // or a power cut takes the whole log along
	}
	if err == nil {
		log, done, err = intent.Open(&stableFile{fd: fd}, (*intentTarget)(v), p.medium, v.Info().Size, p.mode)
	}
	o.Completed, o.Unbegun, o.Forgotten = o.Completed+done.Completed, o.Unbegun+done.Unbegun, o.Forgotten+done.Forgotten
	if err != nil {
		return nil, -1, fmt.Errorf("%s: %w", p.path, errors.Join(err, unix.Close(fd)))
	}
	return log, fd, nil
}

// lockLog keeps a log from another store with the same identity, whose writes would get
// into this one.
func lockLog(fd int) error {
	err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return fmt.Errorf("in use by another volume whose file or device has the same identity, as one in a snapshot has that is mounted beside its origin: serve one of them, or a copy: %w", err)
	}
	return err
}

func (v *volume) closeIntents() error {
	if v.intents == nil {
		return nil
	}
	return unix.Close(v.intentsFd)
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
	err := allocate(v.fd, unix.FALLOC_FL_KEEP_SIZE, off, n)
	if err == unix.EOPNOTSUPP {
		return nil
	}
	return err
}

// Settle implements intent.Target. It writes what is there, for a sync would wait for all
// that is unwritten of the file.
func (v *intentTarget) Settle(off int64, before []byte) error {
	if v.device && !(*volume)(v).Info().VolatileCache {
		return nil
	}
	return writeStable(v.fd, off, [][]byte{before})
}

// ReadAt implements intent.Target.
func (v *intentTarget) ReadAt(b []byte, off int64) error {
	return (&stableFile{fd: v.fd}).ReadAt(b, off)
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
