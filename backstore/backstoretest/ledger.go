package backstoretest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Ledger knows for every sector of a volume which versions of its data a power
// cut may leave: none older than what was promised to be stable, and none that
// was never written. Versions count from 1; a sector of zeroes holds none.
//
// A range of sectors has one user at a time, who tells what it does with it. Cut
// may be called at any time.
type Ledger struct{ entries []entry }

type entry struct {
	durable, begun atomic.Uint64 // a power cut leaves a version between these
	acknowledged   uint64        // the last one that a command has ended well for
	seen           bool          // it was read since something last changed: it has to stay
	mu             struct {
		sync.Mutex
		zeroed []uint64 // versions that are zeroes
	}
}

// NewLedger is for a volume of the given number of sectors, of 512 bytes and all
// zeroes: at most 65536.
func NewLedger(sectors int) *Ledger { return &Ledger{make([]entry, sectors)} }

// Write begins a new version of the sectors from first on, and fills data with it.
func (l *Ledger) Write(data []byte, first int) {
	for i := range len(data) / sector {
		version := l.entries[first+i].begin(false)
		for at := i * sector; at < (i+1)*sector; at += 8 {
			binary.LittleEndian.PutUint64(data[at:], version<<16|uint64(first+i))
		}
	}
}

// Zero begins a new version of n sectors: zeroes.
func (l *Ledger) Zero(first, n int) {
	for i := range n {
		l.entries[first+i].begin(true)
	}
}

func (e *entry) begin(zero bool) uint64 {
	version := e.begun.Load() + 1
	if zero {
		e.mu.Lock()
		e.mu.zeroed = append(e.mu.zeroed, version)
		e.mu.Unlock()
	}
	e.begun.Store(version)
	e.seen = false
	return version
}

// Acknowledged says that what was begun for n sectors has ended well, and whether
// it was promised to be stable. What ends with an error is not acknowledged.
func (l *Ledger) Acknowledged(first, n int, stable bool) {
	for i := range n {
		e := &l.entries[first+i]
		e.acknowledged = e.begun.Load()
		if stable {
			e.durable.Store(e.acknowledged)
		}
	}
}

// Flushed says that what was acknowledged of n sectors was made stable.
func (l *Ledger) Flushed(first, n int) {
	for i := range n {
		e := &l.entries[first+i]
		e.durable.Store(e.acknowledged)
	}
}

// Read looks at what was read from the sectors from first on: the last version, or
// one that ended with an error since. The next read must not find another one.
func (l *Ledger) Read(data []byte, first int) error {
	for i := range len(data) / sector {
		e := &l.entries[first+i]
		most := e.begun.Load()
		if e.seen {
			most = e.acknowledged
		}
		version, err := e.check(data[i*sector:][:sector], first+i, e.acknowledged, most)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if version != 0 {
			e.acknowledged, e.seen = version, true
		}
	}
	return nil
}

// Cut looks at what a power cut leaves: clone returns the bytes of the medium
// without what was volatile.
func (l *Ledger) Cut(clone func() []byte) error {
	least := make([]uint64, len(l.entries))
	for i := range l.entries {
		least[i] = l.entries[i].durable.Load()
	}
	left := clone()
	for i := range l.entries {
		e := &l.entries[i]
		if _, err := e.check(left[i*sector:][:sector], i, least[i], e.begun.Load()); err != nil {
			return fmt.Errorf("after a power cut: %w", err)
		}
	}
	return nil
}

// check returns the version in a sector's data, which has to be least to most.
func (e *entry) check(data []byte, number int, least, most uint64) (uint64, error) {
	first := binary.LittleEndian.Uint64(data)
	for at := 8; at < len(data); at += 8 {
		if word := binary.LittleEndian.Uint64(data[at:]); word != first {
			return 0, fmt.Errorf("sector %d is torn: %#x, and %#x at byte %d", number, first, word, at)
		}
	}
	version := first >> 16
	switch {
	case first == 0 && !e.mayBeZero(least, most):
		return 0, fmt.Errorf("sector %d is zeroes, expected version %d to %d", number, least, most)
	case first != 0 && first&0xffff != uint64(number):
		return 0, fmt.Errorf("sector %d holds the data of sector %d", number, first&0xffff)
	case first != 0 && (version < least || version > most):
		return 0, fmt.Errorf("sector %d holds version %d, expected %d to %d", number, version, least, most)
	}
	return version, nil
}

func (e *entry) mayBeZero(least, most uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return least == 0 || slices.ContainsFunc(e.mu.zeroed, func(z uint64) bool { return least <= z && z <= most })
}
