package pipeline

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Pool is a fixed number of blocks. Its memory is off the Go heap, and aligned to pages
// where the size of a block is. Of a block that was never used there is none.
type Pool struct {
	Blocks []*Block
	memory []byte
}

// NewPool makes blocks with memory of size bytes each. Close gives the memory back.
func NewPool(blocks, size int) (*Pool, error) {
	memory, err := unix.Mmap(-1, 0, blocks*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	p := &Pool{memory: memory}
	for i := range blocks {
		p.Blocks = append(p.Blocks, &Block{Index: i, Memory: memory[i*size : (i+1)*size : (i+1)*size]})
	}
	return p, nil
}

// Bytes is the memory of all blocks, one behind the other.
func (p *Pool) Bytes() []byte { return p.memory }

// Close gives the memory back. Nobody may use a block any more.
func (p *Pool) Close() error { return unix.Munmap(p.memory) }

// Spare are the blocks of a pool that nobody uses. The one that was used last is taken first:
// its memory is in the caches of the CPUs, and what is not needed is not touched at all.
type Spare struct {
	// Ready has something to receive for each block: who receives it calls Take.
	Ready  chan struct{}
	mu     sync.Mutex
	blocks []*Block
}

// NewSpare has all blocks of a pool.
func NewSpare(p *Pool) *Spare {
	s := &Spare{Ready: make(chan struct{}, len(p.Blocks))}
	for _, b := range p.Blocks {
		s.Put(b)
	}
	return s
}

// Put takes a block back.
func (s *Spare) Put(b *Block) {
	s.mu.Lock()
	s.blocks = append(s.blocks, b)
	s.mu.Unlock()
	s.Ready <- struct{}{} // which has room for all
}

// Take gives a block to who has received from Ready.
func (s *Spare) Take() *Block {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.blocks) - 1
	b := s.blocks[last]
	s.blocks = s.blocks[:last]
	return b
}
