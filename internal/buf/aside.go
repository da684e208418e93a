package buf

import "lunar/internal/invariants"

// SetAside keeps up to n blocks of size bytes apart, so that only GetAside hands them
// out, whatever else is in use and however the rest is split. It is called before the
// first Get.
func (p *Pool) SetAside(n, size int) {
	p.aside = make([]uint32, 0, n)
	for range n {
		r := p.Get(size)
		if r == nil {
			return
		}
		r.aside = true
		p.asides++
		r.Release()
	}
}

// Asides returns how many blocks are set aside, in use or not.
func (p *Pool) Asides() int { return p.asides }

// GetAside is Get for the blocks that are set aside.
func (p *Pool) GetAside(n int) *Ref {
	last := len(p.aside) - 1
	if last < 0 || n > p.refs[p.aside[last]].blockSize() {
		return nil
	}
	r := &p.refs[p.aside[last]]
	p.aside = p.aside[:last]
	r.count, r.size = 1, uint32(n)
	p.free -= r.blockSize()
	p.inUse++
	if invariants.Enabled {
		r.assertPoison()
	}
	return r
}

// Unreserved returns how many bytes are not handed out of those that are not set aside.
func (p *Pool) Unreserved() int {
	if len(p.aside) == 0 {
		return p.free
	}
	return p.free - len(p.aside)*p.refs[p.aside[0]].blockSize()
}
