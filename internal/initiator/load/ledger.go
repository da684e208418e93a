package load

import (
	"encoding/binary"
	"fmt"
)

// ledger remembers what every block must hold, and which blocks a command is
// busy with. Generation 0 means unknown: never written in this run, or left
// undefined by a write that failed.
type ledger struct {
	seed       uint64
	first      uint64
	blockSize  int
	generation []uint32
	busy       []int16 // readers, or -1 for a writer
	last       uint32  // generation of the latest write
}

func newLedger(w *Workload, blockSize int) *ledger {
	return &ledger{
		seed: w.Seed, first: w.FirstLBA, blockSize: blockSize,
		generation: make([]uint32, w.Blocks), busy: make([]int16, w.Blocks),
	}
}

// claim marks the blocks of an operation busy and reports false when another
// one is in the way.
func (l *ledger) claim(op operation) bool {
	busy := l.busy[op.lba-l.first:][:op.blocks]
	for _, b := range busy {
		if b < 0 || op.write && b > 0 {
			return false
		}
	}
	for i := range busy {
		if op.write {
			busy[i] = -1
		} else {
			busy[i]++
		}
	}
	return true
}

// release ends a claim. A write's blocks take its generation, 0 if it failed.
func (l *ledger) release(op operation, generation uint32) {
	at := op.lba - l.first
	for i := at; i < at+uint64(op.blocks); i++ {
		if op.write {
			l.busy[i], l.generation[i] = 0, generation
		} else {
			l.busy[i]--
		}
	}
}

// fill writes a fresh generation of the operation's blocks into data and
// returns it.
func (l *ledger) fill(data []byte, op operation) uint32 {
	if l.last++; l.last == 0 {
		l.last = 1
	}
	for i := range op.blocks {
		l.fillBlock(data[i*l.blockSize:][:l.blockSize], op.lba+uint64(i), l.last)
	}
	return l.last
}

const odd = 0x9e3779b97f4a7c15

// base is where the pattern of a block starts: word i of it is base + i*odd.
func (l *ledger) base(lba uint64, generation uint32) uint64 {
	return mix(mix(l.seed^lba*odd) + uint64(generation))
}

func (l *ledger) fillBlock(block []byte, lba uint64, generation uint32) {
	word := l.base(lba, generation)
	for ; len(block) >= 8; block = block[8:] {
		binary.LittleEndian.PutUint64(block, word)
		word += odd
	}
}

// Miscompare says which byte of a block came back wrong.
type Miscompare struct {
	LBA        uint64
	Byte       int // offset of the first wrong word
	Generation uint32
	Got, Want  uint64 // the word, little endian
}

// Error names block, byte and both words.
func (m *Miscompare) Error() string {
	return fmt.Sprintf("LBA %d byte %d: read %016x, wrote %016x (generation %d)", m.LBA, m.Byte, m.Got, m.Want, m.Generation)
}

// check compares the blocks that a read brought with what was written. It
// returns how many had a known content, and the first difference.
func (l *ledger) check(data []byte, op operation) (known int, bad *Miscompare) {
	for i := range op.blocks {
		lba := op.lba + uint64(i)
		generation := l.generation[lba-l.first]
		if generation == 0 {
			continue
		}
		known++
		if bad == nil {
			bad = l.checkBlock(data[i*l.blockSize:][:l.blockSize], lba, generation)
		}
	}
	return known, bad
}

func (l *ledger) checkBlock(block []byte, lba uint64, generation uint32) *Miscompare {
	word := l.base(lba, generation)
	for at := 0; at+8 <= len(block); at += 8 {
		if got := binary.LittleEndian.Uint64(block[at:]); got != word {
			return &Miscompare{lba, at, generation, got, word}
		}
		word += odd
	}
	return nil
}

// nextWritten returns a read of up to limit adjacent blocks of known content at
// or after lba; ok is false when there are none.
func (l *ledger) nextWritten(lba uint64, limit int) (op operation, ok bool) {
	at, end := lba-l.first, uint64(len(l.generation))
	for at < end && l.generation[at] == 0 {
		at++
	}
	op.lba = l.first + at
	for at < end && l.generation[at] != 0 && op.blocks < limit {
		at++
		op.blocks++
	}
	return op, op.blocks > 0
}
