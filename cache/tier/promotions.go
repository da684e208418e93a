package tier

import (
	"sync"
	"sync/atomic"
)

// promotions are a volume's blocks that its admission policy has chosen, to be
// fetched by one of its lanes. What finds no room is chosen again if it remains
// popular.
type promotions struct {
	count atomic.Int32
	mu    struct {
		sync.Mutex
		blocks []uint64
	}
}

// maxPromotions bounds a volume's list.
const maxPromotions = 1024

func (p *promotions) add(block uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.blocks) < maxPromotions {
		p.mu.blocks = append(p.mu.blocks, block)
		p.count.Store(int32(len(p.mu.blocks)))
	}
}

func (p *promotions) take() (block uint64, ok bool) {
	if p.count.Load() == 0 {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.mu.blocks)
	if n == 0 {
		return 0, false
	}
	block, p.mu.blocks = p.mu.blocks[n-1], p.mu.blocks[:n-1]
	p.count.Store(int32(n - 1))
	return block, true
}
