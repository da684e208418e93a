// Package intent makes writes to a file all or nothing: after a crash or a power
// cut at any point all of the data are there, or what was there before.
//
// A Log is a file of slots, each a header in a page of its own and data behind
// it. What a write replaces is made stable first: a power cut would else bring back
// something older, which looks like the work of somebody else. Then the write is stored
// in a slot and made stable there, then written where it belongs and made stable there
// too; then the slot is emptied, before anybody is told. The next opener after a crash
// writes the contents of the slots again, unless
// somebody else has changed the target there: each sector of 512 bytes must be as it was before
// the write, or as the write leaves it. Where all are as before, the write never
// began, and is dropped: nobody was told of it.
//
//	0   8  magic
//	8   8  offset in the file
//	16  8  length of the data
//	24  16 the medium: what was put in its place is left alone
//	40  4  CRC32C of the data
//	44  4  CRC32C of the sums of sectors
//	48  4  CRC32C of the bytes before
//	64     CRC32C of each sector of the target before the write, 4 bytes each
//
// A slot of the first version has no sums: its header ends with the CRC32C of the
// bytes before in bytes 44 to 47.
//
// All numbers are little endian.
package intent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MaxBytes is the most that one write may have.
const MaxBytes = 256 << 10

const (
	magic      = "LUNARAW2"
	firstMagic = "LUNARAW1"
	sumsAt     = 64
	headerSize = sumsAt + MaxBytes/sector*4
	sector     = 512 // what media write wholly or not at all
	pageSize   = 4096
	slotSize   = pageSize + MaxBytes
	slots      = 16 // writes that may be under way
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// File is where a Log keeps its slots.
type File interface {
	// ReadAt fills b from off on; what the file does not have reads as zeroes.
	ReadAt(b []byte, off int64) error
	// WriteStable writes the parts, one behind the other, and makes them stable.
	WriteStable(off int64, parts ...[]byte) error
	// Cut makes the file empty and that stable.
	Cut() error
}

// Target is the file that the writes are for.
type Target interface {
	// ReadAt fills b, which begins with a page, from off on.
	ReadAt(b []byte, off int64) error
	// Reserve makes sure that n bytes at off can be written without room being
	// found for them first, where that can be asked for.
	Reserve(off, n int64) error
	// Settle makes stable what is at off, which ReadAt has returned as before.
	Settle(off int64, before []byte) error
	// WriteStable is that of File.
	WriteStable(off int64, parts ...[]byte) error
}

// Log is the intent log of a Target. All methods may block; they may be called
// from several goroutines at once.
//
// INVARIANT: while a slot is full nobody else changes what it is for, which is
// what callers of Write see to. So nothing newer is lost by writing it again.
type Log struct {
	file   File
	target Target
	medium [2]uint64
	free   chan int // slots
	broken atomic.Pointer[error]
	wiping sync.Mutex
}

// Mode says what becomes of the writes that were interrupted.
type Mode uint8

// The modes.
const (
	Complete Mode = iota // they are completed
	Move                 // also those for another medium: the target has taken its place
	Forget               // they are dropped
)

// ErrPending says that writes have to be completed in a target that cannot be written.
var ErrPending = errors.New("interrupted atomic writes are there in part")

// Outcome counts writes that were under way when the process or the machine ended.
type Outcome struct {
	Completed int
	Unbegun   int // the target had nothing of them, and need not have
	Forgotten int
}

// ErrForeign is in the error of Open for a write that cannot be completed: the
// target is another one, is too short, or was changed by somebody else.
var ErrForeign = errors.New("the target is not as the write has left it")

// ErrOverwritten is an ErrForeign of a target that somebody else has changed where the
// write was interrupted: no Mode but Forget opens the log.
var ErrOverwritten = fmt.Errorf("%w, nor as it was before", ErrForeign)

// Open returns the log of target, which medium tells from others that may take
// its place and which has size bytes. After an error the log is as it was, but for
// what was completed before.
func Open(file File, target Target, medium [2]uint64, size int64, mode Mode) (l *Log, o Outcome, err error) {
	l = &Log{file: file, target: target, medium: medium, free: make(chan int, slots)}
	for i := range slots {
		if err := l.redo(i, size, mode, &o); err != nil {
			return nil, o, fmt.Errorf("intent log: %w", err)
		}
		l.free <- i
	}
	return l, o, nil
}

// Pending returns how many writes a log has that target lacks in part; nil: no
// target is at hand, and all count. It changes nothing.
func Pending(file File, target Target) (n int, err error) {
	for i := range slots {
		w, err := read(file, i)
		if err != nil {
			return n, fmt.Errorf("intent log: %w", err)
		}
		if w == nil {
			continue
		}
		if target != nil && w.sums != nil {
			if is, err := w.compare(target); err == nil && (is == unbegun || is == whole) {
				continue
			}
		}
		n++
	}
	return n, nil
}

// redo completes or drops what slot i has.
func (l *Log) redo(i int, size int64, mode Mode, o *Outcome) error {
	w, err := read(l.file, i)
	switch {
	case err != nil:
		return err
	case w == nil:
		return l.clean(i)
	case mode == Forget:
		o.Forgotten++
		return l.empty(i)
	}
	is, err := w.judge(l.target, l.medium, size, mode)
	switch {
	case err != nil:
		return err
	case is == unbegun:
		o.Unbegun++
		return l.empty(i)
	}
	if err := l.target.WriteStable(w.off, w.data); err != nil {
		return err
	}
	o.Completed++
	return l.empty(i)
}

// judge returns what the target has of a write, and why it cannot be completed there.
func (w *write) judge(target Target, medium [2]uint64, size int64, mode Mode) (is extent, err error) {
	switch {
	case w.medium != medium && mode != Move:
		return 0, fmt.Errorf("found a write of %d bytes at %d for another medium: %w", len(w.data), w.off, ErrForeign)
	case w.off < 0 || w.off > size-int64(len(w.data)):
		return 0, fmt.Errorf("found a write of %d bytes at %d, the target has %d: %w", len(w.data), w.off, size, ErrForeign)
	case w.sums == nil:
		return torn, nil
	}
	if is, err = w.compare(target); err == nil && is == foreign {
		err = fmt.Errorf("somebody else has written to bytes %d to %d, where an atomic write was interrupted: %w", w.off, w.off+int64(len(w.data))-1, ErrOverwritten)
	}
	return is, err
}

// Judge returns why Open would refuse. It changes nothing.
func Judge(file File, target Target, medium [2]uint64, size int64, mode Mode) error {
	if mode == Forget {
		return nil
	}
	for i := range slots {
		w, err := read(file, i)
		if err == nil && w != nil {
			_, err = w.judge(target, medium, size, mode)
		}
		if err != nil {
			return fmt.Errorf("intent log: %w", err)
		}
	}
	return nil
}

// clean empties a slot whose data never were stable, for the same data must not make
// it whole later.
func (l *Log) clean(i int) error {
	h := make([]byte, len(magic))
	if err := l.file.ReadAt(h, int64(i)*slotSize); err != nil {
		return err
	}
	if string(h) != magic && string(h) != firstMagic {
		return nil
	}
	return l.empty(i)
}

// write is what a slot has.
type write struct {
	off    int64
	medium [2]uint64
	data   []byte
	sums   []byte // of the sectors before; nil: of the first version
}

// read returns nil if slot i is empty, or was never stable.
func read(file File, i int) (*write, error) {
	h, at, le := make([]byte, headerSize), int64(i)*slotSize, binary.LittleEndian
	if err := file.ReadAt(h, at); err != nil {
		return nil, err
	}
	end := 48
	if string(h[:8]) == firstMagic {
		end = 44
	}
	if string(h[:7]) != magic[:7] || le.Uint32(h[end:]) != crc32.Checksum(h[:end], castagnoli) {
		return nil, nil
	}
	n := int64(le.Uint64(h[16:]))
	if n <= 0 || n > MaxBytes {
		return nil, fmt.Errorf("slot %d: found %d bytes, expected at most %d", i, n, MaxBytes)
	}
	w := &write{off: int64(le.Uint64(h[8:])), medium: [2]uint64{le.Uint64(h[24:]), le.Uint64(h[32:])}, data: aligned(int(n))}
	if end == 48 {
		w.sums = h[sumsAt:][:sectors(n)*4]
	}
	if err := file.ReadAt(w.data, at+pageSize); err != nil {
		return nil, err
	}
	if le.Uint32(h[40:]) != crc32.Checksum(w.data, castagnoli) || w.sums != nil && le.Uint32(h[44:]) != crc32.Checksum(w.sums, castagnoli) {
		return nil, nil
	}
	return w, nil
}

func sectors(n int64) int64 { return (n + sector - 1) / sector }

// sumsOf returns the CRC32C of each sector.
func sumsOf(data []byte) (sums []byte) {
	for len(data) > 0 {
		n := min(sector, len(data))
		sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(data[:n], castagnoli))
		data = data[n:]
	}
	return sums
}

// extent is what a target has where a write was interrupted.
type extent uint8

const (
	unbegun extent = iota // what was there before
	whole                 // all of the write, stable or not
	torn                  // both
	foreign               // something else
)

// compare looks at what the target has.
func (w *write) compare(target Target) (extent, error) {
	there := aligned(len(w.data))
	if err := target.ReadAt(there, w.off); err != nil {
		return 0, err
	}
	found, after := sumsOf(there), sumsOf(w.data)
	if bytes.Equal(found, w.sums) {
		return unbegun, nil
	}
	if bytes.Equal(found, after) {
		return whole, nil
	}
	for i := 0; i < len(found); i += 4 {
		if sum := found[i : i+4]; !bytes.Equal(sum, after[i:i+4]) && !bytes.Equal(sum, w.sums[i:i+4]) {
			return foreign, nil
		}
	}
	return torn, nil
}

// aligned returns n bytes that begin with a page, as targets with direct I/O want
// them.
func aligned(n int) []byte {
	b := make([]byte, n+pageSize)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (pageSize - 1)
	return b[skip:][:n:n]
}

// Broken returns why the log takes no more writes; nil: it does.
func (l *Log) Broken() error {
	if err := l.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Write writes data at off in the target, all or nothing, and makes them stable.
// Data, which
// target gets as they are, have at most MaxBytes, and nobody else changes the target there meanwhile.
// After an error of the log nothing has changed; after one of the target some of
// it may have.
func (l *Log) Write(data []byte, off int64) error {
	if err := l.broken.Load(); err != nil {
		return *err
	}
	if err := l.target.Reserve(off, int64(len(data))); err != nil {
		return err
	}
	before := aligned(len(data))
	if err := l.target.ReadAt(before, off); err != nil {
		return err
	}
	if err := l.target.Settle(off, before); err != nil {
		return err
	}
	slot := <-l.free
	if err := l.file.WriteStable(int64(slot)*slotSize, l.header(data, sumsOf(before), off), data); err != nil {
		return errors.Join(fmt.Errorf("intent log: %w", err), l.giveBack(slot))
	}
	return errors.Join(l.target.WriteStable(off, data), l.giveBack(slot))
}

// header describes a write.
func (l *Log) header(data, sums []byte, off int64) []byte {
	h, le := make([]byte, pageSize), binary.LittleEndian
	copy(h, magic)
	le.PutUint64(h[8:], uint64(off))
	le.PutUint64(h[16:], uint64(len(data)))
	le.PutUint64(h[24:], l.medium[0])
	le.PutUint64(h[32:], l.medium[1])
	le.PutUint32(h[40:], crc32.Checksum(data, castagnoli))
	le.PutUint32(h[44:], crc32.Checksum(sums, castagnoli))
	le.PutUint32(h[48:], crc32.Checksum(h[:48], castagnoli))
	copy(h[sumsAt:], sums)
	return h
}

// giveBack empties a slot. One that stays full would undo later writes at the next
// start: then the file is cut, and there are no more such writes.
func (l *Log) giveBack(slot int) error {
	err := l.empty(slot)
	if err == nil {
		l.free <- slot
		return nil
	}
	if cut := l.file.Cut(); cut != nil {
		err = fmt.Errorf("intent log: found no way to empty it; remove it before the next start: %w", errors.Join(err, cut))
	} else {
		err = fmt.Errorf("intent log: %w", err)
	}
	l.broken.CompareAndSwap(nil, &err)
	l.free <- slot
	return err
}

// empty makes the slot empty and that stable.
func (l *Log) empty(slot int) error {
	return l.file.WriteStable(int64(slot)*slotSize, make([]byte, sumsAt))
}

// Wipe overwrites what is left of the data of earlier writes.
func (l *Log) Wipe() error {
	l.wiping.Lock() // two would wait for each other's slots
	defer l.wiping.Unlock()
	zeroes := make([]byte, slotSize)
	var taken []int
	defer func() {
		for _, slot := range taken {
			l.free <- slot
		}
	}()
	for range slots {
		slot := <-l.free
		taken = append(taken, slot)
		if err := l.file.WriteStable(int64(slot)*slotSize, zeroes); err != nil {
			return fmt.Errorf("intent log: %w", err)
		}
	}
	return nil
}
