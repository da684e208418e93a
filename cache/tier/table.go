package tier

import (
	"hash/crc32"
	"sync/atomic"
	"time"
	"unsafe"

	"lunar/backstore"
	"lunar/backstore/evidence"
)

// table gives volumes, which are told by an identity that never changes, dense
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
//	word 10      Unix time in ns when the process was alive
//	word 11      size in bytes before a change that has not ended; 0: none is under way
//	word 16..31  name
type table struct{ words []uint64 }

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
	atName     = 16
	rowWords   = 32
	rowBytes   = rowWords * 8
	nameBytes  = (rowWords - atName) * 8
)

// States of a volume.
const (
	rowOpen     = backstore.Disturbed // it is open, or was when its process ended: its store may have changed since its stamp was noted
	rowClosed   = 2                   // it was closed in order, and its stamp noted
	rowSettling = 3                   // as rowOpen, while the stamp is being noted
	rowSettled  = 4                   // it is open, and its store has not changed since the stamp was noted
)

// newTable lays a table over memory, which begins at a page.
func newTable(mem []byte) table {
	return table{unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/rowBytes*rowWords)}
}

// ownTable is one of n rows that nobody else can see.
func ownTable(n int) table { return table{make([]uint64, n*rowWords)} }

func (t table) rows() int { return len(t.words) / rowWords }

// row is one volume's.
type row struct {
	number uint32
	words  []uint64
}

func (t table) row(n uint32) row {
	from := int(n) * rowWords
	return row{n, t.words[from : from+rowWords : from+rowWords]}
}

func (r row) load(at int) uint64     { return atomic.LoadUint64(&r.words[at]) }
func (r row) store(at int, v uint64) { atomic.StoreUint64(&r.words[at], v) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r row) key(id uint64) uint64 {
	var b [12]byte
	for i := range 8 {
		b[i] = byte(id >> (8 * i))
	}
	for i := range 4 {
		b[8+i] = byte(r.number >> (8 * i))
	}
	return uint64(crc32.Checksum(b[:], castagnoli)) | 1<<32
}

// used reports whether the row is a volume's. A key that is not 0 and not right
// is none.
func (r row) used() bool { return r.load(atKey) == r.key(r.load(atIdentity)) }

func (r row) id() uint64    { return r.load(atIdentity) }
func (r row) size() int64   { return int64(r.load(atSize)) }
func (r row) state() uint64 { return r.load(atState) }

// give makes a free row that of a volume.
func (r row) give(id uint64) {
	r.store(atKey, 0)
	for i := atIdentity; i < rowWords; i++ {
		r.store(i, 0)
	}
	r.store(atIdentity, id)
	r.store(atKey, r.key(id))
}

// free takes the row from its volume, of which nothing may be cached.
func (r row) free() { r.store(atKey, 0) }

// open notes that the volume is open. What the row says of the store's state must
// not be believed from then on.
func (r row) open(medium [3]uint64, size int64, name string) {
	r.store(atState, rowOpen)
	r.store(atAlive, uint64(time.Now().UnixNano()))
	for i, w := range medium {
		r.store(atMedium+i, w)
	}
	r.store(atSize, uint64(size))
	r.setName(name)
}

// close notes that the volume was closed in order, with this stamp.
func (r row) close(s backstore.Stamp) {
	r.store(atState, rowOpen)
	r.note(s)
	r.store(atState, rowClosed)
}

// note notes the state of the store.
func (r row) note(s backstore.Stamp) {
	for i, w := range s.State {
		r.store(atStamp+i, w)
	}
}

// stateWord is the state, which the store changes by itself: see backstore.Watched.
func (r row) stateWord() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&r.words[atState])) }

// noted is what is known of the store.
func (r row) noted() evidence.Noted {
	state := r.state()
	return evidence.Noted{Stamp: r.stamp(), Size: r.size(), Settled: state == rowClosed || state == rowSettled, Alive: int64(r.load(atAlive))}
}

// stamp returns what was noted last.
func (r row) stamp() (s backstore.Stamp) {
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
func (r row) setName(name string) {
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

func (r row) name() string {
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

// find returns a volume's row.
func (t table) find(id uint64) (row, bool) {
	for n := range t.rows() {
		if r := t.row(uint32(n)); r.id() == id && r.used() {
			return r, true
		}
	}
	return row{}, false
}

// vacant returns the first free row below limit.
func (t table) vacant(limit int) (row, bool) {
	for n := range min(limit, t.rows()) {
		if r := t.row(uint32(n)); !r.used() {
			return r, true
		}
	}
	return row{}, false
}

// end returns the number behind the last row that is used, and how many are.
func (t table) end() (end, used int) {
	for n := range t.rows() {
		if t.row(uint32(n)).used() {
			end, used = n+1, used+1
		}
	}
	return end, used
}
