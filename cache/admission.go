package cache

// Admission decides which blocks of an LU may enter a partition. There is one
// for each LU and partition; nil admits everything, which is LRU. All methods
// are called under the partition's lock. A policy has no clock: its time is the
// number of accesses.
type Admission interface {
	// Hit notes an access that found its data.
	Hit(k Key)
	// Miss notes an access to an absent block and tells whether the block may
	// enter.
	Miss(k Key) bool
	// Evicted notes that a block has left to make room.
	Evicted(k Key)
	// Due reports that Tick wants to be called.
	Due() bool
	// Tick does the policy's periodic work and fills out with blocks that are
	// to enter now, in this order; the caller fetches them with Prefetch. If
	// out is full there may be more: Due remains true.
	Tick(out []Key) int
}

// Due reports cheaply that Tick should be called.
func (p *Partition) Due() bool { return p.due.Load() }

// Tick runs the policies that are due and fills out with blocks to fetch. Call
// it again as long as Due.
func (p *Partition) Tick(out []Key) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, due := 0, false
	for i := range p.lus {
		if a := p.lus[i].admission; a != nil && a.Due() {
			n += a.Tick(out[n:])
			due = due || a.Due()
		}
	}
	p.due.Store(due)
	return n
}

// Tune gives an LU's FussyCache other parameters. It begins anew, not LRU; an LU
// without one gets none.
func (p *Partition) Tune(lu uint32, params FussyParams) error {
	f, err := NewFussy(params)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.lus[lu].admission.(*Fussy); ok {
		p.lus[lu].admission = f
	}
	return nil
}

// admit asks the LU's policy whether an absent block may enter.
func (p *Partition) admit(k Key) bool {
	a := p.lus[k.LU].admission
	if a == nil {
		return true
	}
	enter := a.Miss(k)
	p.note(a)
	return enter
}

// hit tells the LU's policy of a hit.
func (p *Partition) hit(k Key) {
	if a := p.lus[k.LU].admission; a != nil {
		a.Hit(k)
		p.note(a)
	}
}

func (p *Partition) note(a Admission) {
	if a.Due() && !p.due.Load() {
		p.due.Store(true)
	}
}
