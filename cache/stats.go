package cache

import "slices"

// LUStats are what a partition knows of one LU. Hits and misses are counted
// since the partition was made.
type LUStats struct {
	Blocks     int
	DirtyBytes uint64
	Hits       uint64     // reads that found all they wanted
	Misses     uint64     // reads that did not, waits and prefetching not counted
	Fussy      FussyStats // Params are zero without a FussyCache
}

// FussyStats are the state of one FussyCache.
type FussyStats struct {
	Params   FussyParams
	Warming  bool // it admits everything until its parameters are found
	LRU      bool // it admits everything now, because its hit rate fell
	Switches int  // between its two modes
	Counted  int  // blocks in the metadata cache
	Popular  int  // of them, those that enter at the next tick
}

// Stats returns the state of the policy. The caller holds what protects it.
func (f *Fussy) Stats() FussyStats {
	return FussyStats{
		Params: f.params, Warming: f.lru && f.switches == 0, LRU: f.lru && f.switches > 0, Switches: f.switches,
		Counted: f.freq.Len(), Popular: f.popular.Len(),
	}
}

// AppendLUStats appends what is known of every LU, by number, under one lock.
func (p *Partition) AppendLUStats(to []LUStats) []LUStats {
	to = slices.Grow(to, len(p.lus))
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.lus {
		u := &p.lus[i]
		s := LUStats{Blocks: int(u.used), DirtyBytes: u.dirty * p.sub, Hits: u.hits, Misses: u.misses}
		if f, ok := u.admission.(*Fussy); ok {
			s.Fussy = f.Stats()
		}
		to = append(to, s)
	}
	return to
}

// found counts a read that found all it wanted.
func (p *Partition) found(lu uint32) {
	p.stats.Hits++
	p.lus[lu].hits++
}

// missed counts a read that did not.
func (p *Partition) missed(lu uint32) {
	p.stats.Misses++
	p.lus[lu].misses++
}
