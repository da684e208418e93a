package cache

import "fmt"

// LUConfig is what a partition does for one LU.
type LUConfig struct {
	Min         uint32    // blocks that other LUs cannot evict
	Max         uint32    // blocks that the LU may have at most; 0: no limit
	Replacement string    // lru (default), golang-lru, 2q
	Admission   Admission // what may enter; nil: everything
}

// unit is an LU's share of a partition.
type unit struct {
	order     Replacement
	admission Admission
	hits      uint64
	misses    uint64
	used      uint32
	min, max  uint32
	dirty     uint64 // sub-blocks
}

// SetLU configures LU lu, which may have blocks already: these stay, in the order
// of their use. An LU that was never set has no limits and LRU replacement.
func (p *Partition) SetLU(lu uint32, c LUConfig) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if int(lu) >= len(p.lus) {
		return fmt.Errorf("cache for LU %d: expected less than %d", lu, len(p.lus))
	}
	if err := p.checkShare(lu, c); err != nil {
		return err
	}
	order, err := newReplacement(c.Replacement, p.blocks)
	if err != nil {
		return err
	}
	u := &p.lus[lu]
	for u.used > 0 && u.order.Oldest(noKey) != NoSlot {
		slot := u.order.Oldest(noKey)
		u.order.Remove(slot, false)
		order.Insert(slot, p.blocks[slot].key())
	}
	u.order, u.admission, u.min, u.max = order, c.Admission, c.Min, c.Max
	return nil
}

// SetShare changes how many blocks of LU lu others cannot evict, and how many it
// may have at most (0: no limit). Blocks that are too many leave as others come.
func (p *Partition) SetShare(lu, least, most uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkShare(lu, LUConfig{Min: least, Max: most}); err != nil {
		return err
	}
	p.lus[lu].min, p.lus[lu].max = least, most
	return nil
}

func (p *Partition) checkShare(lu uint32, c LUConfig) error {
	if c.Max != 0 && c.Max < c.Min {
		return fmt.Errorf("cache for LU %d: minimum of %d blocks above maximum of %d", lu, c.Min, c.Max)
	}
	sum := uint64(c.Min)
	for i := range p.lus {
		if uint32(i) != lu {
			sum += uint64(p.lus[i].min)
		}
	}
	if sum > uint64(len(p.blocks)) {
		return fmt.Errorf("cache for LU %d: all minima add up to %d blocks, expected at most %d", lu, sum, len(p.blocks))
	}
	return nil
}

// adopt counts a block that has entered the index.
func (u *unit) adopt(p *Partition, slot uint32, k Key) {
	if u.used == 0 {
		p.active = append(p.active, k.LU) // within its capacity: see NewPartition
	}
	u.used++
	u.order.Insert(slot, k)
}

// disown counts a block that leaves the index.
func (u *unit) disown(p *Partition, slot uint32, evicted bool) {
	u.order.Remove(slot, evicted)
	if u.used--; u.used > 0 {
		return
	}
	lu := p.blocks[slot].lu
	for i, id := range p.active {
		if id == lu {
			last := len(p.active) - 1
			p.active[i] = p.active[last]
			p.active = p.active[:last]
			return
		}
	}
}

const (
	// victimLimit bounds how many blocks are looked at to make room for one.
	victimLimit = 32
	// unitLimit bounds how many LUs' oldest blocks are compared for each.
	unitLimit = 16
)

// victim returns a block that may go so that block k can enter, or NoSlot.
// The oldest block of all goes first, but never one of another LU that has no
// more than its minimum, and only an own one for an LU at its maximum. What is
// in use or dirty gets another round.
func (p *Partition) victim(k Key) uint32 {
	for range victimLimit {
		u := &p.lus[k.LU]
		if u.max == 0 || u.used < u.max {
			u = p.donor(k)
		}
		if u == nil {
			return NoSlot
		}
		slot := u.order.Oldest(k)
		if slot == NoSlot || p.blocks[slot].evictable() {
			return slot
		}
		u.order.Spare(slot)
		p.stamp(slot)
	}
	return NoSlot
}

// donor returns the LU whose oldest block has been unused for longest, among
// those that may lose one to block k; nil if there is none. With more than unitLimit
// LUs it looks at the next that many each time.
func (p *Partition) donor(k Key) *unit {
	var best *unit
	var age uint64
	for range min(len(p.active), unitLimit) {
		p.turn++
		id := p.active[p.turn%uint32(len(p.active))]
		u := &p.lus[id]
		if id != k.LU && u.used <= u.min {
			continue
		}
		slot := u.order.Oldest(k)
		if slot == NoSlot {
			continue
		}
		if a := p.clock - p.blocks[slot].stamp; best == nil || a > age {
			best, age = u, a
		}
	}
	return best
}

// Purge evicts up to budget blocks of an LU, dirty ones included, and returns
// how many are left. Blocks in use stay: call it again. The LU must no longer
// be written to.
func (p *Partition) Purge(lu uint32, budget int) (left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := &p.lus[lu]
	for range min(budget, int(u.used)) {
		slot := u.order.Oldest(noKey)
		if !p.blocks[slot].idle() {
			u.order.Spare(slot)
			continue
		}
		p.setClean(slot, p.blocks[slot].dirty)
		p.evict(slot)
	}
	p.verify()
	return int(u.used)
}
