package rftp

import (
	"fmt"

	"lunar/internal/pipeline"
)

// perDone is how many credits answer a block that is there: the number doubles each cycle.
const perDone = 2

// Sink gives credits for the blocks of a pool.
type Sink struct {
	blocks   []*pipeline.Block
	by       map[uint64]*pipeline.Block // by address
	addr     []uint64                   // by index
	rkey     uint32
	length   uint32
	first    int   // credits that answer an MR_REQUEST
	free     []int // indices; the one that was used last is the last, and is given first, as by pipeline.Spare
	deferred bool  // an MR_REQUEST waits for a free block
}

// NewSink gives credits for blocks at addresses base, base+length, ... first credits answer
// a request, at least 1.
func NewSink(blocks []*pipeline.Block, base uint64, rkey, length uint32, first int) *Sink {
	s := &Sink{blocks: blocks, by: map[uint64]*pipeline.Block{}, rkey: rkey, length: length, first: max(first, 1)}
	for i, b := range blocks {
		a := base + uint64(i)*uint64(length)
		s.by[a], s.addr, s.free = b, append(s.addr, a), append(s.free, len(blocks)-1-i)
	}
	return s
}

// Requested answers an MR_REQUEST. No credits: the answer is deferred until a block is free.
func (s *Sink) Requested() []Credit {
	c := s.grant(s.first)
	s.deferred = len(c) == 0
	return c
}

// Done takes a BLOCK_DONE. The block is the caller's until Put, unless it was unused, which
// returns nil.
func (s *Sink) Done(addr uint64, unused bool) (*pipeline.Block, error) {
	b := s.by[addr]
	if b == nil {
		return nil, fmt.Errorf("found a block at address %#x, where no credit was given", addr)
	}
	if !unused {
		return b, b.Do(pipeline.Sink, pipeline.Fill)
	}
	err := b.Do(pipeline.Sink, pipeline.Release)
	if err == nil {
		s.free = append(s.free, b.Index)
	}
	return nil, err
}

// Answer returns the credits that answer a BLOCK_DONE; none: it is not answered.
func (s *Sink) Answer() []Credit {
	c := s.grant(perDone)
	s.deferred = s.deferred && len(c) == 0
	return c
}

// Put takes a block back that is free now, and returns the credits that answer a deferred
// request.
func (s *Sink) Put(b *pipeline.Block) []Credit {
	s.free = append(s.free, b.Index)
	if !s.deferred {
		return nil
	}
	s.deferred = false
	return s.grant(1)
}

// Free counts the blocks for which no credit is out and that nobody uses.
func (s *Sink) Free() int { return len(s.free) }

// At returns the block of an address for which a credit is out; nil: none is.
func (s *Sink) At(addr uint64) *pipeline.Block {
	if b := s.by[addr]; b != nil && b.State == pipeline.NetWait {
		return b
	}
	return nil
}

func (s *Sink) grant(most int) (c []Credit) {
	for len(c) < most && len(s.free) > 0 {
		last := len(s.free) - 1
		i := s.free[last]
		s.free = s.free[:last]
		if s.blocks[i].Do(pipeline.Sink, pipeline.Take) != nil {
			panic("rftp: a free block is not free")
		}
		c = append(c, Credit{s.addr[i], s.rkey, s.length})
	}
	return c
}
