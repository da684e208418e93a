package pipeline

import "lunar/internal/arena"

// Pool is a fixed number of blocks. Its memory is off the Go heap, and aligned to pages
// where the size of a block is.
type Pool struct {
	Blocks []*Block
	memory *arena.Arena
}

// NewPool makes blocks with memory of size bytes each. Close gives the memory back.
func NewPool(blocks, size int) (*Pool, error) {
	memory, err := arena.Open(arena.Options{Bytes: int64(blocks) * int64(size), Node: -1, Threads: 1})
	if err != nil {
		return nil, err
	}
	p := &Pool{memory: memory}
	for i := range blocks {
		p.Blocks = append(p.Blocks, &Block{Index: i, Memory: memory.Bytes()[i*size : (i+1)*size : (i+1)*size]})
	}
	return p, nil
}

// Bytes is the memory of all blocks, one behind the other.
func (p *Pool) Bytes() []byte { return p.memory.Bytes() }

// Close gives the memory back. Nobody may use a block any more.
func (p *Pool) Close() error { return p.memory.Close() }
