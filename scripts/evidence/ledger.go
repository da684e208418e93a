package main

import (
	"fmt"
	"slices"
)

// version is what a block may hold: a generation, or the zeroes of a command that
// had this number.
type version struct {
	generation uint32
	zeroes     bool
}

// ledger knows what each block of a volume may hold after a fault. The oldest
// version comes first; all but the last have been acknowledged, the last one perhaps.
// At most one command under way changes a block.
type ledger struct {
	volume  int
	next    uint32
	blocks  [][]version
	current []version     // acknowledged last
	atomic  []*atomically // writes under way
}

// atomically is a write that has to be there wholly or not at all.
type atomically struct {
	lba, n     int
	generation uint32
}

func newLedger(volume, blocks int) *ledger {
	l := &ledger{volume: volume, blocks: make([][]version, blocks), current: make([]version, blocks)}
	for lba := range l.blocks {
		l.blocks[lba] = []version{{}}
	}
	return l
}

// begin notes that a command is sent, and returns its version.
func (l *ledger) begin(lba, n int, zeroes, atomic bool) version {
	l.next++
	v := version{l.next, zeroes}
	for i := lba; i < lba+n; i++ {
		l.blocks[i] = append(l.blocks[i], v)
	}
	if atomic {
		l.atomic = append(l.atomic, &atomically{lba, n, v.generation})
	}
	return v
}

// acknowledged notes the good end of a command; lasting: no fault may undo it.
func (l *ledger) acknowledged(lba, n int, v version, lasting bool) {
	for i := lba; i < lba+n; i++ {
		l.current[i] = v
		if lasting {
			l.blocks[i] = append(l.blocks[i][:0], v)
		}
	}
	l.atomic = slices.DeleteFunc(l.atomic, func(a *atomically) bool { return a.generation == v.generation })
}

// refused notes that a command was not executed: nothing of it may be there.
func (l *ledger) refused(lba, n int, v version) {
	for i := lba; i < lba+n; i++ {
		l.blocks[i] = slices.DeleteFunc(l.blocks[i], func(b version) bool { return b == v })
	}
	l.atomic = slices.DeleteFunc(l.atomic, func(a *atomically) bool { return a.generation == v.generation })
}

// snapshot is what a flush that is sent now makes last.
func (l *ledger) snapshot() []version { return slices.Clone(l.current) }

// flushed notes the good end of the flush that was sent then.
func (l *ledger) flushed(then []version) {
	for lba, v := range then {
		l.blocks[lba] = slices.DeleteFunc(l.blocks[lba], func(b version) bool { return b.generation < v.generation })
	}
}

// read compares what a read between faults returned with what was acknowledged.
func (l *ledger) read(lba int, data []byte) error {
	for i := 0; i < len(data)/blockSize; i++ {
		if _, err := l.find(lba+i, data[i*blockSize:][:blockSize], l.current[lba+i:lba+i+1]); err != nil {
			return err
		}
	}
	return nil
}

// find returns which of the versions a block holds.
func (l *ledger) find(lba int, block []byte, may []version) (version, error) {
	if block == nil {
		return version{}, fmt.Errorf("block %d: %w", lba, errUnreadable)
	}
	g, err := generation(block, l.volume, lba)
	if err != nil {
		return version{}, fmt.Errorf("block %d: %w; it may be %v", lba, err, may)
	}
	for _, v := range slices.Backward(may) {
		if v.holds(g) {
			return v, nil
		}
	}
	return version{}, fmt.Errorf("block %d: found generation %d, it may be %v", lba, g, may)
}

func (v version) holds(generation uint32) bool {
	if v.zeroes {
		return generation == 0
	}
	return v.generation == generation
}

// inspect compares all of the volume after a fault with what it may hold, and returns
// what is wrong.
func (l *ledger) inspect(blocks [][]byte) (wrong []error) {
	for lba, block := range blocks {
		if _, err := l.find(lba, block, l.blocks[lba]); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// survey is inspect that takes what is there as acknowledged, if nothing is wrong.
func (l *ledger) survey(blocks [][]byte) (wrong []error) {
	if wrong = l.inspect(blocks); len(wrong) > 0 {
		return wrong
	}
	for lba, block := range blocks {
		l.current[lba], _ = l.find(lba, block, l.blocks[lba])
	}
	for _, a := range l.atomic {
		if err := l.whole(a); err != nil {
			wrong = append(wrong, err)
		}
	}
	l.atomic = nil
	for lba, v := range l.current {
		l.blocks[lba] = append(l.blocks[lba][:0], v)
	}
	return wrong
}

// whole: nothing has overwritten a write that is under way, so all of its blocks have it
// or none.
func (l *ledger) whole(a *atomically) error {
	has := 0
	for _, v := range l.current[a.lba : a.lba+a.n] {
		if v.generation == a.generation {
			has++
		}
	}
	if has != 0 && has != a.n {
		return fmt.Errorf("atomic write of %d blocks at %d: %d are there", a.n, a.lba, has)
	}
	return nil
}
