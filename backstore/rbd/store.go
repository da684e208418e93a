package rbd

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/internal/changes"
	"lunar/internal/quiesce"
)

// Config says which image a store is on.
type Config struct {
	Clients   *Clients
	Account   Account
	Image     Name
	Server    string // identity of this server, of which one process at a time runs
	BlockSize int    // of the logical unit in bytes; 0 is 512
	ReadOnly  bool
	Patience  time.Duration // for a cluster that does not answer control calls; 0: 30 s
	Logger    *slog.Logger
	// Before hears of the image as it was found, before its lock is taken; nil: nobody does.
	Before func(backstore.Watched) error
	// Epoch, if it is not 0, is that of the claim by which a cluster lets this server have the
	// image: who had its lock by a later one keeps it from being opened. Instance is the address
	// of the instance that the claim was made with, by whom somebody stays; empty: any.
	Epoch    uint64
	Instance string
	// Superseded are addresses of instances that have lost the image to this server, by the
	// word of a cluster: their lock is broken although they may live.
	Superseded []string
	// Fresh hears, under the image's lock, that the image was open for no claim yet and holds nothing,
	// and with which header it is enciphered, before the epoch is noted; nil: nobody does. After an
	// error it is not opened.
	Fresh func(header string) error
	// Lost hears, on a goroutine and once, that the image is lost to somebody else; nil:
	// nobody does.
	Lost func(error)
	// Resized hears, on a goroutine, that somebody else has given the image another size; nil:
	// nobody does.
	Resized func()
}

const (
	defaultPatience = 30 * time.Second
	sector          = 512
	discardGran     = 64 << 10 // bytes that the cluster's stores give back
	atomicSpan      = 16 << 10 // bytes, within one object at its multiples
)

// Store is an image. It implements backstore.Resizer, backstore.Watched and
// backstore.Patient.
type Store struct {
	Config
	clients  *Clients
	instance *instance
	image    Image
	what     string // for messages
	identity string
	opened   backstore.Stamp // as it was found; zero: nothing is known

	stage    atomic.Int32 // of Open
	info     atomic.Pointer[backstore.Info]
	outside  atomic.Int64 // size that the image has got from others, 0: none
	fence    atomic.Pointer[error]
	counters quiesce.Counters // of the lanes
	changes  changes.Counts
	resizing sync.Mutex

	open     sync.RWMutex // held shared by who uses the image besides lanes
	closed   bool         // under open
	closing  sync.Once
	endError error // of Close
	watcher  sync.WaitGroup
}

// Address is that of the instance that has the image open.
func (s *Store) Address() string { return s.instance.Address() }

// Info implements backstore.Store.
func (s *Store) Info() backstore.Info { return *s.info.Load() }

// Close implements backstore.Store. A cluster that does not answer does not hold it up
// for ever.
func (s *Store) Close() error {
	s.closing.Do(func() {
		if s.endError = s.close(); s.endError != nil {
			s.endError = fmt.Errorf("close %s: %w", s.what, s.endError)
		}
	})
	return s.endError
}

func (s *Store) close() error {
	_, err := within(s.Patience, func() (struct{}, error) { return struct{}{}, s.end() }, func(struct{}, error) {
		_ = s.clients.release(s.instance, s.Patience) // nobody is left to be told
	})
	if errors.Is(err, ErrLate) {
		return err // the instance is in use until that ends
	}
	return errors.Join(err, s.clients.release(s.instance, s.Patience))
}

func (s *Store) end() (err error) {
	s.open.Lock() // whoever asks the image has its answer before
	s.closed = true
	s.open.Unlock()
	if !s.ReadOnly && s.fence.Load() == nil {
		err = s.image.Annotate(OwnerNote, "")
	}
	err = errors.Join(err, s.image.Close())
	s.watcher.Wait()
	if errors.Is(err, unix.ESHUTDOWN) { // there is nothing left to give back
		s.fenced(unix.ESHUTDOWN)
		return nil
	}
	return err
}

// failed explains the errno that an operation has ended with, and notes a fence.
func (s *Store) failed(op *backstore.Op, errno error) error {
	class := backstore.Classify(errno)
	if errors.Is(errno, unix.ESHUTDOWN) || errors.Is(errno, unix.EROFS) {
		class = fmt.Errorf("%w: %w", backstore.ErrFenced, errno)
		s.fenced(errno)
	}
	return fmt.Errorf("%v at byte %d of %s: %w", op.Kind, op.Off, s.what, class)
}

// fenced notes that the image is somebody else's now. An instance that the cluster refuses
// is of no use to other volumes either.
func (s *Store) fenced(errno error) {
	why := "its exclusive lock was taken from this server"
	if errors.Is(errno, unix.ESHUTDOWN) {
		why = "the cluster has blocklisted this server's instance " + s.instance.Address()
		s.clients.banish(s.instance)
	}
	err := fmt.Errorf("%s: %s: %w", s.what, why, backstore.ErrFenced)
	if s.fence.CompareAndSwap(nil, &err) {
		s.Logger.Error("an image is lost to somebody else: its commands fail until the volume is opened anew", "image", s.Image, "reason", why)
		if s.Lost != nil {
			go s.Lost(err)
		}
	}
}

// Fenced reports whether the image is lost to somebody else: only opening it anew helps.
func (s *Store) Fenced() bool { return s.fence.Load() != nil }

// Troubles implements backstore.Patient.
func (s *Store) Troubles() []backstore.Trouble {
	if err := s.fence.Load(); err != nil {
		return []backstore.Trouble{{Failed: true, What: (*err).Error()}}
	}
	return nil
}

// Examine implements backstore.Patient.
func (s *Store) Examine() []backstore.Trouble {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed || s.ReadOnly || s.fence.Load() != nil || s.image.Owned() {
		return nil
	}
	return []backstore.Trouble{{Failed: true, What: s.what + ": its exclusive lock was taken from this server"}}
}
