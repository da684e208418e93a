package crypt

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Scratch memory for cipher text on its way down, in bytes. Data that are written are
// the caller's and may be read meanwhile: a cache's block, or memory that was lent.
const (
	smallSize  = 16 << 10
	largeSize  = 256 << 10
	smallCount = 64
	largeCount = 8
	poolSize   = smallCount*smallSize + largeCount*largeSize
)

// scratch is a lane's: off-heap, page aligned, and no more than poolSize, of which
// only what is used takes memory. Who finds none waits in order of arrival.
type scratch struct {
	memory  []byte
	classes [2]class
}

// class is the buffers of one size.
type class struct {
	free        [][]byte
	first, last *job // that wait
}

// take returns a buffer of n bytes; nil: j waits, and is started when it has one. The
// memory is mapped when first needed.
func (s *scratch) take(n int, j *job) ([]byte, error) {
	if s.memory == nil {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	c := s.classOf(n)
	if i := len(c.free) - 1; i >= 0 {
		b := c.free[i]
		c.free = c.free[:i]
		return b[:n], nil
	}
	j.next = nil
	if c.last == nil {
		c.first = j
	} else {
		c.last.next = j
	}
	c.last = j
	return nil, nil
}

func (s *scratch) classOf(n int) *class {
	if n <= smallSize {
		return &s.classes[0]
	}
	return &s.classes[1]
}

func (s *scratch) open() (err error) {
	s.memory, err = unix.Mmap(-1, 0, poolSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("memory to encipher in: %w", err)
	}
	rest := s.memory
	for i, of := range []struct{ size, count int }{{smallSize, smallCount}, {largeSize, largeCount}} {
		for range of.count {
			s.classes[i].free = append(s.classes[i].free, rest[:of.size:of.size])
			rest = rest[of.size:]
		}
	}
	return nil
}

// give takes a buffer back, and returns who has it now; nil: nobody.
func (s *scratch) give(b []byte) *job {
	c := s.classOf(len(b))
	b = b[:cap(b)]
	j := c.first
	if j == nil {
		c.free = append(c.free, b)
		return nil
	}
	if c.first = j.next; c.first == nil {
		c.last = nil
	}
	j.next, j.buffer = nil, b
	return j
}

func (s *scratch) close() {
	if s.memory != nil {
		_ = unix.Munmap(s.memory)
		*s = scratch{}
	}
}
