// Package intent makes writes to a file all or nothing: after a crash or a power
// cut at any point all of the data are there, or what was there before.
//
// A Log is a file of slots, each a header in a page of its own and data behind
// it. A write is stored in a slot and made stable there, then written where it
// belongs and made stable there too; then the slot is emptied, before anybody is
// told. Who opens the file after a crash writes again what is in the slots.
//
//	0   8  magic
//	8   8  offset in the file
//	16  8  length of the data
//	24  16 the medium: what was put in its place is left alone
//	40  4  CRC32C of the data
//	44  4  CRC32C of the bytes before
//
// All numbers are little endian.
package intent

import (
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
	magic      = "LUNARAW1"
	headerSize = 48
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
	// Reserve makes sure that n bytes at off can be written without room being
	// found for them first, where that can be asked for.
	Reserve(off, n int64) error
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

// Open returns the log of target, which medium tells from others that may take
// its place. What the log has of a write that was under way when the process or
// the machine ended is written again, if it lies within the size bytes of the
// target: redone and dropped say how many writes that was, and how many were left
// out.
func Open(file File, target Target, medium [2]uint64, size int64) (l *Log, redone, dropped int, err error) {
	l = &Log{file: file, target: target, medium: medium, free: make(chan int, slots)}
	for i := range slots {
		ok, full, err := l.redo(i, size)
		switch {
		case err != nil:
			return nil, redone, dropped, fmt.Errorf("intent log: %w", err)
		case ok:
			redone++
		case full:
			dropped++
		}
		l.free <- i
	}
	return l, redone, dropped, nil
}

// redo writes again what slot i has; full says that it had something.
func (l *Log) redo(i int, size int64) (done, full bool, err error) {
	h, at := make([]byte, headerSize), int64(i)*slotSize
	if err := l.file.ReadAt(h, at); err != nil {
		return false, false, err
	}
	le := binary.LittleEndian
	if string(h[:8]) != magic || le.Uint32(h[44:]) != crc32.Checksum(h[:44], castagnoli) {
		return false, false, nil // empty, or it was never stable
	}
	off, n := int64(le.Uint64(h[8:])), int64(le.Uint64(h[16:]))
	if n <= 0 || n > MaxBytes {
		return false, false, fmt.Errorf("slot %d: found %d bytes, expected at most %d", i, n, MaxBytes)
	}
	data := aligned(int(n))
	if err := l.file.ReadAt(data, at+pageSize); err != nil {
		return false, false, err
	}
	if le.Uint32(h[40:]) != crc32.Checksum(data, castagnoli) {
		return false, false, l.empty(i) // it was never stable, and the same data must not make it whole later
	}
	done = off >= 0 && off <= size-n && le.Uint64(h[24:]) == l.medium[0] && le.Uint64(h[32:]) == l.medium[1]
	if done {
		if err := l.target.WriteStable(off, data); err != nil {
			return false, true, err
		}
	}
	return done, true, l.empty(i)
}

// aligned returns n bytes that begin with a page, as targets with direct I/O want
// them.
func aligned(n int) []byte {
	b := make([]byte, n+pageSize)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (pageSize - 1)
	return b[skip:][:n:n]
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
	slot := <-l.free
	if err := l.file.WriteStable(int64(slot)*slotSize, l.header(data, off), data); err != nil {
		return errors.Join(fmt.Errorf("intent log: %w", err), l.giveBack(slot))
	}
	return errors.Join(l.target.WriteStable(off, data), l.giveBack(slot))
}

// header describes a write.
func (l *Log) header(data []byte, off int64) []byte {
	h, le := make([]byte, pageSize), binary.LittleEndian
	copy(h, magic)
	le.PutUint64(h[8:], uint64(off))
	le.PutUint64(h[16:], uint64(len(data)))
	le.PutUint64(h[24:], l.medium[0])
	le.PutUint64(h[32:], l.medium[1])
	le.PutUint32(h[40:], crc32.Checksum(data, castagnoli))
	le.PutUint32(h[44:], crc32.Checksum(h[:44], castagnoli))
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
	return l.file.WriteStable(int64(slot)*slotSize, make([]byte, headerSize))
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
