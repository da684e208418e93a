package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
)

// blockSize is what the ledger has lines of.
const blockSize = 4 * kib

// ledger knows what was written to a volume and what was acknowledged, and judges images by
// that alone. It knows nothing of the server: time is a counter that moves with each write
// that begins or is acknowledged, and with each question. A block has at most one write under
// way, and each write has a number of its own, the time at which it began.
type ledger struct {
	mu     sync.Mutex
	now    uint64
	blocks []history
	judged int // images
}

// history is what a block may have.
type history struct {
	writes []written // in the order in which they began
	seen   uint64    // the newest that an image had: a later image has no older one
}

type written struct{ number, acknowledged uint64 } // acknowledged 0: nobody knows

func newLedger(blocks int) *ledger { return &ledger{blocks: make([]history, blocks)} }

// tick is the time now, which nothing else has.
func (l *ledger) tick() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	return l.now
}

// begins notes that a write begins, and returns its number.
func (l *ledger) begins(block int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	h := &l.blocks[block]
	h.writes = append(h.writes, written{number: l.now})
	return l.now
}

// acknowledged notes that the last write of a block was.
func (l *ledger) acknowledged(block int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	h := &l.blocks[block]
	h.writes[len(h.writes)-1].acknowledged = l.now
}

// content is what a write writes: its block and number, in each line of 16 bytes.
func content(block int, number uint64) []byte {
	line := binary.BigEndian.AppendUint64(nil, uint64(block))
	return bytes.Repeat(binary.BigEndian.AppendUint64(line, number), blockSize/16)
}

// numbersOf are the writes that an image has, by block; 0: none.
func numbersOf(image []byte) (numbers []uint64, err error) {
	for at := 0; at < len(image); at += blockSize {
		b, block := image[at:at+blockSize], at/blockSize
		number := binary.BigEndian.Uint64(b[8:])
		want := content(block, number)
		if number == 0 {
			clear(want)
		}
		if !bytes.Equal(b, want) {
			return nil, fmt.Errorf("block %d is not of one write: it begins with % x and ends with % x", block, b[:16], b[blockSize-16:])
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// judge says what is wrong with an image that was asked for after the moment asked, and was
// there at the moment there. It has to be of one moment between: with everything that was
// acknowledged before, nothing that began later, and nothing without what was acknowledged
// before it began.
func (l *ledger) judge(image []byte, asked, there uint64) error {
	numbers, err := numbersOf(image)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(numbers) != len(l.blocks) {
		return fmt.Errorf("found %d blocks, expected %d", len(numbers), len(l.blocks))
	}
	moment := asked // at least
	for _, n := range numbers {
		moment = max(moment, n)
	}
	if moment > there {
		return fmt.Errorf("found write %d, which began after the image was there at %d", moment, there)
	}
	for block, n := range numbers {
		if err := l.blocks[block].judge(n, moment); err != nil {
			return fmt.Errorf("block %d: %w", block, err)
		}
	}
	l.judged++
	return nil
}

// judge says what is wrong with the write that an image of a moment, or later, has.
func (h *history) judge(n, moment uint64) error {
	known, due := n == 0, uint64(0)
	for _, w := range h.writes {
		known = known || w.number == n
		if w.acknowledged != 0 && w.acknowledged < moment {
			due = w.number
		}
	}
	switch {
	case n < h.seen:
		return fmt.Errorf("found write %d, expected at least %d, which an earlier image had", n, h.seen)
	case !known:
		return fmt.Errorf("found write %d, which nobody made", n)
	case n < due:
		return fmt.Errorf("found write %d, expected at least %d, which was acknowledged before moment %d", n, due, moment)
	}
	h.seen = n
	for len(h.writes) > 1 && h.writes[1].number <= n { // older ones can be nowhere any more
		h.writes = h.writes[1:]
	}
	return nil
}

// again has everything be as an image is: the volume was rolled back to it.
func (l *ledger) again(image []byte) error {
	numbers, err := numbersOf(image)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	for block, n := range numbers {
		l.blocks[block] = history{seen: n}
		if n != 0 {
			l.blocks[block].writes = []written{{n, l.now}}
		}
	}
	return nil
}
