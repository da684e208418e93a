package windows

import (
	"slices"
	"sync"
)

// claims keep changes of the same bytes apart: each is more than one operation below. Who
// has to wait blocks.
type claims struct {
	mu    sync.Mutex
	freed sync.Cond
	held  []claim
}

type claim struct{ off, end int64 }

// take waits until nobody has a part of a range.
func (c *claims) take(off, n int64) claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freed.L == nil {
		c.freed.L = &c.mu
	}
	mine := claim{off, off + n}
	for slices.ContainsFunc(c.held, func(o claim) bool { return o.off < mine.end && mine.off < o.end }) {
		c.freed.Wait()
	}
	c.held = append(c.held, mine)
	return mine
}

// release gives a claim back.
func (c *claims) release(mine claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.held, mine)
	c.held = slices.Delete(c.held, i, i+1)
	c.freed.Broadcast()
}
