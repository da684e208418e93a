// Package backstore holds the bytes of a logical unit: files, block devices,
// memory, or nothing at all.
//
// A Store is opened once and is shared by all event threads; a Lane is one
// event thread's way into it. An Op starts on a lane and ends on the same
// thread, so that neither side needs a lock.
package backstore

import (
	"errors"
	"fmt"

	"lunar/internal/buf"
	"lunar/internal/evloop"
)

// Kind is what an Op does.
type Kind uint8

// The kinds of Op.
const (
	Read        Kind = iota // fill Data from Off
	Write                   // store Data at Off; with FUA also onto stable media
	Flush                   // make what was acknowledged before stable: at least [Off, Off+Len), all if Len is 0
	Discard                 // release [Off, Off+Len): it reads as zeroes afterwards where Info.DiscardZeroes
	WriteZeroes             // make [Off, Off+Len) read as zeroes, provisioned if the store can
	Map                     // report in Mapped and Len the provisioning state of the extent that starts at Off (Len in: the most that is of interest)
	Wipe                    // overwrite what is left of written data beside the medium: in logs, not in caches
	Erase                   // forget the key of all data, where Info.CryptoErase: [Off, Off+Len) is the whole store, and reads give anything
)

// Errors that stores return, to be tested with errors.Is. Any other error
// means that the medium could not be read or written.
var (
	ErrNoSpace     = errors.New("no space left on the backing store")
	ErrOutOfRange  = errors.New("beyond the end of the backing store")
	ErrUnsupported = errors.New("not supported by the backing store")
	ErrGone        = errors.New("the backing store has vanished")
	ErrLost        = errors.New("what was written before may be lost") // a failed flush, which says so once: later ones may succeed
	ErrReadOnly    = errors.New("the backing store is read-only")
	ErrFenced      = fmt.Errorf("somebody else has it now: %w", ErrGone) // what a server fails with that was fenced off
)

// Op is one asynchronous operation. The submitter owns it and its Data; from
// Submit until Done (or a true result of Submit) the lane owns both.
// Ops are embedded in commands and reused, so that steady state I/O allocates
// nothing.
type Op struct {
	Kind Kind
	FUA  bool
	Off  int64  // bytes from the start of the store
	Len  int64  // bytes; for Read and Write the lane uses len(Data)
	Data []byte // off-heap; page aligned unless the op goes to TryNow

	// Tuples are the blocks' protection information, of eight bytes each, that a
	// store of package protect hands out on Read and keeps on Write, and Unchecked
	// has it not compare them: the device server does that itself. Other stores do
	// not look at them.
	Tuples    []byte
	Unchecked bool

	// Atomic has a Write with FUA leave all of its data or none, whatever becomes
	// of the process and the machine, and of operations that fail for want of
	// space. At most Info.MaxAtomic bytes, and multiples of Info.AtomicUnit. Nobody
	// else may change the extent meanwhile; a Read meanwhile may see half of it.
	Atomic bool

	Mapped bool  // result of Map
	Hit    bool  // result: a cache served it, without the store that it is for
	Err    error // result; nil means that all of it was done

	// Done is called on the lane's thread when an op that Submit left
	// running has ended. It is never called from inside Submit.
	Done func(*Op)

	lane  laneState
	owner func(*Op) // Done, while a Slot hears of the end
}

// Info is what a store says of itself. It may change only by Resize.
type Info struct {
	Size          int64  // bytes
	BlockSize     int    // smallest unit of I/O that the store itself demands (1 if none)
	PhysicalBlock int    // unit that is written without read-modify-write
	Discard       bool   // Discard is supported
	DiscardGran   int    // granularity of Discard in bytes (0 unless Discard)
	DiscardZeroes bool   // discarded ranges read as zeroes
	VolatileCache bool   // acknowledged writes may need Flush to survive a power cut
	ReadOnly      bool   // opened without write access
	Rotational    bool   // spinning medium
	Thin          bool   // unmapped ranges take no space
	CryptoErase   bool   // Erase is supported
	MaxAtomic     int    // the most bytes of a Write with Atomic (0: there are none)
	AtomicUnit    int    // what its offset and length are multiples of
	Describe      string // for logs: kind and path
}

// Store is an opened volume.
type Store interface {
	// Info is safe for concurrent use and cheap.
	Info() Info
	// Lane opens the store for the event thread l. It may be called from any
	// goroutine, the lane itself belongs to l's thread.
	Lane(l *evloop.Loop) (Lane, error)
	// Close releases the store; all lanes must have been closed and idle.
	Close() error
}

// Lane is one event thread's access to a store. All methods run on that
// thread.
type Lane interface {
	// TryNow performs op at once if that cannot block, and reports whether
	// it did; op.Err then holds the result. Data need not be aligned.
	// A false result left no trace: the caller goes on with Submit.
	TryNow(op *Op) bool
	// Submit starts op. If it ended already the result is true and Done is
	// not called; else Done is called later on this thread.
	Submit(op *Op) bool
	// Close lets go of the lane; no op may be running.
	Close()
}

// Lender is a Lane that holds data in memory and lends it, so that a read need
// not copy them.
type Lender interface {
	// Lend returns the bytes of the store from off on, at most n of them, or nil
	// if they are not there now: Submit a Read then. What is returned ends n bytes
	// behind off or at a multiple of 4096. The caller has one reference; until it
	// is released nobody changes the bytes, so it must not be kept for long. A
	// lane may be closed before.
	Lend(off int64, n int) *buf.Ref
}

// ForeseeSteps is how many steps Foreseer.Foresee has.
const ForeseeSteps = 2

// Foreseer is a Lender that finds data sooner if it hears before of what will be read.
type Foreseer interface {
	// Foresee has the processor fetch what is needed to find the byte off, which is
	// anything, and waits for nothing. A step needs what the one before it has fetched:
	// let others happen in between. Nothing can be seen of it.
	Foresee(off int64, step int)
}
