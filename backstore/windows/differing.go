package windows

import "sync"

// differences are the regions in which Scrub has found members to differ, and that nobody has
// copied since.
type differences struct {
	mu  sync.Mutex
	set regions
}

// compared notes what the comparison of a piece at off has come to. The first piece of a region,
// whose size has the logarithm shift, takes the place of what was found there before.
func (d *differences) compared(off int64, shift int, differs bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r := off >> shift; {
	case differs:
		d.set.add(r)
	case off == r<<shift:
		d.set.drop(r)
	}
}

// copied notes that both members have the same in a region, and reports whether it was the last
// that differed.
func (d *differences) copied(r int64) (last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.set.has(r) {
		return false
	}
	d.set.drop(r)
	return d.set.empty()
}

// fit follows another size of the volume.
func (d *differences) fit(from, to int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set.fit(from, to)
}

// count is how many there are.
func (d *differences) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set.count()
}
