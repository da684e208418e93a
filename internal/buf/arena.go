package buf

import (
	"fmt"

	"lunar/internal/arena"
)

// mapArena takes and touches memory of one node. What a huge page has beyond
// size stays unused.
func mapArena(size int, node int, huge arena.Huge) (*arena.Arena, error) {
	a, err := arena.Open(arena.Options{Bytes: int64(size), Node: node, Huge: huge, Threads: 1})
	if err != nil {
		return nil, fmt.Errorf("buffer pool: %w", err)
	}
	return a, nil
}

// unmap gives the memory back.
func (p *Pool) unmap() error {
	if p.arena == nil {
		return nil
	}
	a := p.arena
	p.arena = nil
	if err := a.Close(); err != nil {
		return fmt.Errorf("buffer pool: %w", err)
	}
	return nil
}
