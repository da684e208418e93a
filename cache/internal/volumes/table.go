package volumes

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"lunar/backstore"
	"lunar/backstore/evidence"
)

// Table gives volumes, which are told by an identity that never changes, dense
// numbers: volume n has row n. It may lie in memory that outlives the process,
// which may end between any two stores: a row counts from the store of its key,
// which comes last, to the store of 0 there.
//
// A row is 32 words:
//
//	word 0       key: CRC32C of the row's number and identity, and bit 32;
//	             0 if the row is free
//	word 1       identity
//	word 2       size in bytes
//	word 3       state: see below; 0 before the first time
//	word 4,5,6   medium of the store's stamp
//	word 7,8,9   state of the store's stamp, as it was noted last
//	word 10      time when the process was alive: see beat; 0: not known
//	word 11      size in bytes before a change that has not ended; 0: none is under way
//	word 12      CRC32C of words 1 to 31 without 3, 10 and 12, and bits 32 and 63;
//	             0 while they change
//	word 16..31  name
//
// Words 3 and 10 are stored by others at any time: their values are chosen so that one
// with a bit that has flipped is none.
type Table struct {
	words    []uint64
	changing *sync.Mutex // held by who changes words that word 12 covers
}

// Positions in a row.
const (
	atKey      = 0
	atIdentity = 1
	atSize     = 2
	atState    = 3
	atMedium   = 4
	atStamp    = 7
	atAlive    = 10
	atBefore   = 11
	atCheck    = 12
	atName     = 16
	rowWords   = 32
	RowBytes   = rowWords * 8 // that a row takes
	nameBytes  = (rowWords - atName) * 8
)

// States of a volume.
const (
	rowOpen     = backstore.Disturbed // it is open, or was when its process ended: its store may have changed since its stamp was noted
	rowClosed   = 0x2222222222222222  // it was closed in order, and its stamp noted
	rowSettling = 0x4444444444444444  // as rowOpen, while the stamp is being noted
	rowSettled  = 0x8888888888888888  // it is open, and its store has not changed since the stamp was noted
)

// NewTable lays a table over memory, which begins at a page.
func NewTable(mem []byte) Table {
	return Table{unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/RowBytes*rowWords), new(sync.Mutex)}
}

// NewPrivateTable is one of n rows that nobody else can see.
func NewPrivateTable(n int) Table { return Table{make([]uint64, n*rowWords), new(sync.Mutex)} }

// Rows returns how many rows there are.
func (t Table) Rows() int { return len(t.words) / rowWords }

// Row is one volume's.
type Row struct {
	Number   uint32
	words    []uint64
	changing *sync.Mutex
}

// Row returns that of number n.
func (t Table) Row(n uint32) Row {
	from := int(n) * rowWords
	return Row{n, t.words[from : from+rowWords : from+rowWords], t.changing}
}

func (r Row) load(at int) uint64     { return atomic.LoadUint64(&r.words[at]) }
func (r Row) store(at int, v uint64) { atomic.StoreUint64(&r.words[at], v) }

// change does what stores words that word 12 covers. Of a process that ends in it they
// are believed without: each is old or new.
func (r Row) change(do func()) {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.store(atCheck, 0)
	do()
	r.store(atCheck, r.sum())
}

// sum is what word 12 is to be.
func (r Row) sum() uint64 {
	crc, b := uint32(0), [8]byte{}
	for at := atIdentity; at < rowWords; at++ {
		if at != atState && at != atAlive && at != atCheck {
			binary.LittleEndian.PutUint64(b[:], r.load(at))
			crc = crc32.Update(crc, castagnoli, b[:])
		}
	}
	return uint64(crc) | 1<<63 | 1<<32
}

// Beat notes that the process is alive: the Unix time in ns, in which the lowest two bytes
// are a checksum of the others.
func (r Row) Beat(now int64) { r.store(atAlive, timed(uint64(now))) }

func timed(ns uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], ns>>16)
	return ns&^0xffff | uint64(crc32.Checksum(b[:], castagnoli)&0xffff)
}

// alive is the time of the last beat, or a little earlier; 0: it is not known.
func (r Row) alive() int64 { return int64(r.load(atAlive) &^ 0xffff) }

// check finds a row that no process has left.
func (r Row) check() error {
	switch alive, sum, state := r.load(atAlive), r.load(atCheck), r.state(); {
	case r.load(atKey) == 0:
		return nil
	case !r.Used():
		return fmt.Errorf("row %d of identity %#x has the key %#x, expected %#x", r.Number, r.ID(), r.load(atKey), r.key(r.ID()))
	case sum != 0 && sum != r.sum():
		return fmt.Errorf("row %d of volume %q has the checksum %#x, expected %#x", r.Number, r.Name(), sum, r.sum())
	case state != 0 && state != rowOpen && state != rowClosed && state != rowSettling && state != rowSettled:
		return fmt.Errorf("row %d of volume %q has the state %#x", r.Number, r.Name(), state)
	case alive != 0 && alive != timed(alive):
		return fmt.Errorf("row %d of volume %q has the time %#x, expected %#x", r.Number, r.Name(), alive, timed(alive))
	}
	return nil
}

// Check finds what no process has left. Whatever instruction it ended at, it leaves nothing
// that is found here.
func (t Table) Check() error {
	for n := range t.Rows() {
		if err := t.Row(uint32(n)).check(); err != nil {
			return err
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r Row) key(id uint64) uint64 {
	var b [12]byte
	for i := range 8 {
		b[i] = byte(id >> (8 * i))
	}
	for i := range 4 {
		b[8+i] = byte(r.Number >> (8 * i))
	}
	return uint64(crc32.Checksum(b[:], castagnoli)) | 1<<32
}

// Used reports whether the row is a volume's. A key that is not 0 and not right
// is none.
func (r Row) Used() bool { return r.load(atKey) == r.key(r.load(atIdentity)) }

// ID returns the volume's identity.
func (r Row) ID() uint64 { return r.load(atIdentity) }

// Size returns that of the volume in bytes, as it was noted.
func (r Row) Size() int64 { return int64(r.load(atSize)) }

// Opened reports whether the volume has ever been open.
func (r Row) Opened() bool { return r.state() != 0 }

func (r Row) state() uint64 { return r.load(atState) }

// Give makes a free row that of a volume.
func (r Row) Give(id uint64) {
	r.store(atKey, 0)
	for i := atIdentity; i < rowWords; i++ {
		r.store(i, 0)
	}
	r.store(atIdentity, id)
	r.store(atKey, r.key(id))
}

// Free takes the row from its volume, of which nothing may be cached.
func (r Row) Free() { r.store(atKey, 0) }

// Open notes that the volume is open. What the row says of the store's state must
// not be believed from then on.
func (r Row) Open(medium [3]uint64, size int64, name string) {
	r.store(atState, rowOpen)
	r.Beat(time.Now().UnixNano())
	r.change(func() {
		for i, w := range medium {
			r.store(atMedium+i, w)
		}
		r.store(atSize, uint64(size))
		r.setName(name)
	})
}

// Resize notes a size, and the one before a change that has not ended; 0: none is under way.
// That is there whenever the size may not be the store's.
func (r Row) Resize(size, before int64) {
	r.change(func() {
		if before != 0 {
			r.store(atBefore, uint64(before))
		}
		r.store(atSize, uint64(size))
		r.store(atBefore, uint64(before))
	})
}

// Close notes that the volume was closed in order, with this stamp.
func (r Row) Close(s backstore.Stamp) {
	r.store(atState, rowOpen)
	r.Note(s)
	r.store(atState, rowClosed)
}

// Note notes the state of the store.
func (r Row) Note(s backstore.Stamp) {
	r.change(func() {
		for i, w := range s.State {
			r.store(atStamp+i, w)
		}
	})
}

// stateWord is the state, which the store changes by itself: see backstore.Watched.
func (r Row) stateWord() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&r.words[atState])) }

// Noted is what is known of the store.
func (r Row) Noted() evidence.Noted {
	state := r.state()
	return evidence.Noted{Stamp: r.Stamp(), Size: r.Size(), Settled: state == rowClosed || state == rowSettled, Alive: r.alive()}
}

// Stamp returns what was noted last.
func (r Row) Stamp() (s backstore.Stamp) {
	for i := range s.Medium {
		s.Medium[i] = r.load(atMedium + i)
	}
	for i := range s.State {
		s.State[i] = r.load(atStamp + i)
	}
	return s
}

// setName is for messages only: what a process that was killed here leaves does
// not matter.
func (r Row) setName(name string) {
	for i := range nameBytes / 8 {
		word := uint64(0)
		for b := range 8 {
			if at := i*8 + b; at < len(name) {
				word |= uint64(name[at]) << (8 * b)
			}
		}
		r.store(atName+i, word)
	}
}

// Name returns the volume's, as far as there is room for it.
func (r Row) Name() string {
	name := make([]byte, 0, nameBytes)
	for i := range nameBytes {
		c := byte(r.load(atName+i/8) >> (8 * (i % 8)))
		if c == 0 {
			break
		}
		name = append(name, c)
	}
	return string(name)
}

// Find returns a volume's row.
func (t Table) Find(id uint64) (Row, bool) {
	for n := range t.Rows() {
		if r := t.Row(uint32(n)); r.ID() == id && r.Used() {
			return r, true
		}
	}
	return Row{}, false
}

// Vacant returns the first free row below limit.
func (t Table) Vacant(limit int) (Row, bool) {
	for n := range min(limit, t.Rows()) {
		if r := t.Row(uint32(n)); !r.Used() {
			return r, true
		}
	}
	return Row{}, false
}

// End returns the number behind the last row that is used, and how many are.
func (t Table) End() (end, used int) {
	for n := range t.Rows() {
		if t.Row(uint32(n)).Used() {
			end, used = n+1, used+1
		}
	}
	return end, used
}
