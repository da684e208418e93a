package blocks

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"

	"lunar/cache"
)

// Harmed notes what Wrong has found.
func (m *Memory) Harmed(p *Partition, slot uint32, k cache.Key, wrong uint64) {
	if wrong == 0 {
		return
	}
	m.damaged.Add(uint64(bits.OnesCount64(wrong)))
	dirty, chain := p.Damaged(slot, wrong)
	Wake(chain)
	r, size := m.table.Row(k.LU), int64(p.Block)
	log := m.log.With("volume", r.Name(), "identity", fmt.Sprintf("%#x", r.ID()))
	for mask := wrong; mask != 0; mask &= mask - 1 {
		sub := bits.TrailingZeros64(mask)
		at := int64(k.Block)*size + int64(sub*p.Sub)
		if dirty>>sub&1 != 0 {
			log.Error("unwritten data in the cache were damaged in memory: these bytes are unreadable, and not written to the store, until they are overwritten as a whole or discarded; check the machine's memory, and restore what lies there", "byte", at, "bytes", p.Sub)
		} else {
			log.Warn("a clean part of a cache block was damaged in memory: it is read from the store again; check the machine's memory", "byte", at, "bytes", p.Sub)
		}
	}
}

// inspect compares the sums of a slot and returns how many bytes it has looked at.
func (m *Memory) inspect(p *Partition, slot uint32) int64 {
	k, mask, ok := p.Examine(slot)
	if !ok {
		return 0
	}
	wrong := p.Wrong(slot, mask)
	m.Harmed(p, slot, k, wrong)
	Wake(p.Unpin(slot))
	return m.BytesOf(mask)
}

// inspectAll looks at all that a segment had when it was attached.
func (m *Memory) inspectAll() {
	if !m.checksum {
		return
	}
	var group sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range m.Parts {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			p := &m.Parts[i]
			for slot := range p.Slots() {
				m.inspect(p, slot)
			}
		})
	}
	group.Wait()
}

// scrubBytes are compared every watchEvery: 13 MB/s, which takes a thousandth of a CPU.
const scrubBytes = 64 << 20

// Scrub compares the next sums; most of the slots may be empty.
func (m *Memory) Scrub() {
	if !m.checksum {
		return
	}
	at, bytes := &m.scrubbing, int64(0)
	slots := len(m.Parts) * int(m.Parts[0].Slots())
	for range slots {
		p := &m.Parts[at.part]
		bytes += m.inspect(p, at.slot)
		if at.slot++; at.slot == p.Slots() {
			at.slot, at.part = 0, (at.part+1)%len(m.Parts)
		}
		if bytes >= scrubBytes {
			return
		}
	}
}

// Damaged returns how many sub-blocks were found to be damaged.
func (m *Memory) Damaged() uint64 { return m.damaged.Load() }

// DamagedIn returns how many bytes in the blocks [first, end) of a volume are damaged.
func (m *Memory) DamagedIn(lu uint32, first, end uint64) (n int64) {
	if m.damaged.Load() == 0 {
		return 0
	}
	from, to := cache.Key{LU: lu, Block: first}, cache.Key{LU: lu, Block: end}
	for i := range m.Parts {
		n += int64(m.Parts[i].DamagedIn(from, to))
	}
	return n * int64(m.Geometry.SubBlock())
}
