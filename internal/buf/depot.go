package buf

import "slices"

// Depot is memory that grows by pools of a huge page up to a bound, and shrinks again:
// for data that live as long as a peer wants, of which a pool of a fixed size would have
// too much or too little. It costs the garbage collector nothing. A new pool costs as
// much as its page faults, so emptied pools stay until Trim finds that a steady load does
// without them. A Depot and its Refs belong to one thread.
type Depot struct {
	node  int
	most  int      // pools
	spare int      // pools without a buffer in use that Trim leaves
	pools []*shelf // all
	open  []*shelf // those that may have a free block, the one to ask first at the end
	empty int      // pools without a buffer in use
	least int      // the least of empty since the last Trim
}

// shelf is a pool of a Depot.
type shelf struct {
	*Pool
	open bool
}

// looked is how many pools a Get asks before the depot grows.
const looked = 8

// shelfSize is the size of a pool in bytes: that of a huge page, which is there after one
// page fault (BenchmarkDepotGrows).
const shelfSize = 2 * MaxSize

// NewDepot makes one whose memory is of a NUMA node, as NewPool has it. It holds up to
// most bytes, and Trim leaves up to spare of them that are not in use.
func NewDepot(most, spare, node int) *Depot {
	return &Depot{node: node, most: most / shelfSize, spare: spare / shelfSize}
}

// Get returns a page-aligned buffer of n bytes with one reference, or nil when there are
// as many as there may be, or no memory is left. 1 <= n <= MaxSize.
func (d *Depot) Get(n int) *Ref {
	for i := len(d.open) - 1; i >= max(0, len(d.open)-looked); i-- {
		s := d.open[i]
		if ref := d.from(s, n); ref != nil {
			return ref
		}
		if s.free == 0 {
			s.open, d.open = false, slices.Delete(d.open, i, i+1)
		}
	}
	if len(d.pools) >= d.most {
		return nil
	}
	p, err := NewPool(shelfSize, d.node)
	if err != nil {
		return nil
	}
	s := &shelf{p, true}
	p.freed = func() { d.freed(s) }
	d.pools, d.open = append(d.pools, s), append(d.open, s)
	d.empty++
	return d.from(s, n)
}

// from gets a buffer of one of the pools.
func (d *Depot) from(s *shelf, n int) *Ref {
	idle := s.inUse == 0
	ref := s.Get(n)
	if ref != nil && idle {
		d.empty--
		d.least = min(d.least, d.empty)
	}
	return ref
}

// freed follows a Release.
func (d *Depot) freed(s *shelf) {
	if !s.open {
		s.open, d.open = true, append(d.open, s)
	}
	if s.inUse == 0 {
		d.empty++
	}
}

// Trim gives a pool back if there was one, beyond the spare ones, that nothing has been in
// since the last Trim, and reports whether there may be more. It is to be called now and
// then: a load that comes again soon finds most of what it had.
func (d *Depot) Trim() (more bool) {
	if d.least > d.spare {
		s := d.pools[slices.IndexFunc(d.pools, func(s *shelf) bool { return s.inUse == 0 })]
		d.empty--
		d.pools, d.open = remove(d.pools, s), remove(d.open, s)
		_ = s.Close() // nothing of it is in use
	}
	d.least = d.empty
	return len(d.pools) > d.spare
}

func remove(from []*shelf, s *shelf) []*shelf {
	return slices.DeleteFunc(from, func(o *shelf) bool { return o == s })
}

// Size returns how many bytes the depot has, in use or not.
func (d *Depot) Size() int { return len(d.pools) * shelfSize }

// InUse returns how many buffers are handed out and not yet fully released.
func (d *Depot) InUse() (n int) {
	for _, p := range d.pools {
		n += p.inUse
	}
	return n
}

// Close gives back all memory of which nothing is in use. What is stays mapped.
func (d *Depot) Close() (err error) {
	for _, p := range d.pools {
		if e := p.Close(); e != nil {
			err = e
		}
	}
	d.pools, d.open, d.empty, d.least = nil, nil, 0, 0
	return err
}
