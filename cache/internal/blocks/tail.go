package blocks

import "lunar/cache"

// Tail is all that a volume has behind a byte, and the sub-block that the byte cuts,
// claimed by a control goroutine: nobody reads, writes or flushes it until Release.
type Tail struct {
	memory *Memory
	lu     uint32
	waiter cache.Waiter
	ready  chan struct{}

	drops []claim
	last  claim  // the sub-block that end cuts
	from  uint32 // in its block: where that is behind end
	bytes int    // behind; 0: nothing is there
}

type claim struct {
	part  *Partition
	grant cache.Grant
}

// ClaimTail claims what lies behind byte end of a volume, and the sub-block that it
// cuts. It waits for those who have claims there.
func (m *Memory) ClaimTail(lu uint32, end int64) *Tail {
	t := &Tail{memory: m, lu: lu, ready: make(chan struct{}, 1)}
	t.waiter.Owner = t
	t.cut(end)
	t.behind(end)
	return t
}

// Resume implements Waiting.
func (t *Tail) Resume() { t.ready <- struct{}{} }

// wait asks until the grant is no Wait.
func (t *Tail) wait(part *Partition, ask func() cache.Grant) claim {
	for {
		if g := ask(); g.Outcome != cache.Wait {
			return claim{part, g}
		}
		<-t.ready
	}
}

// cut claims the sub-block that byte end lies in, if that does not begin there.
func (t *Tail) cut(end int64) {
	g := t.memory.Geometry
	block, sub := int64(g.BlockSize()), int64(g.SubBlock())
	if end%sub == 0 {
		return
	}
	key := cache.Key{LU: t.lu, Block: uint64(end / block)}
	part := t.memory.Part(key)
	touched, _ := g.Masks(uint32(end%block), 1)
	t.last = t.wait(part, func() cache.Grant {
		return part.BeginWrite(key, touched, 0, false, &t.waiter)
	})
	if grant := &t.last.grant; grant.Outcome == cache.Granted && grant.Missing == 0 {
		from := end % block
		t.from, t.bytes = uint32(from), int(sub-from%sub)
	}
}

// behind claims all sub-blocks behind end.
func (t *Tail) behind(end int64) {
	g := t.memory.Geometry
	block, sub := uint64(g.BlockSize()), int64(g.SubBlock())
	from := uint64((end + sub - 1) / sub * sub)
	for _, key := range t.memory.resident(t.lu, from/block) {
		part, off := t.memory.Part(key), uint64(0)
		if key.Block == from/block {
			off = from % block
		}
		mask, _ := g.Masks(uint32(off), uint32(block-off))
		t.drops = append(t.drops, t.wait(part, func() cache.Grant { return part.BeginDrop(key, mask, &t.waiter) }))
	}
}

// Release ends the claims. If what was claimed is gone, it is dropped, and zeroes follow
// the end in its sub-block.
func (t *Tail) Release(gone bool) {
	for i := range t.drops {
		Wake(t.drops[i].part.EndDrop(&t.drops[i].grant, gone))
	}
	if t.last.part == nil {
		return
	}
	if m := t.memory; gone && t.bytes > 0 {
		t.last.part.Put(m.AnyIntent(), &t.last.grant, t.from, m.Zeroes[:t.bytes])
	}
	// What is clean leaves the cache, what is dirty stays.
	Wake(t.last.part.EndWrite(&t.last.grant, cache.Failed))
}
