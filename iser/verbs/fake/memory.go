package fake

import (
	"lunar/iser/verbs"
)

// domain is a protection domain.
type domain struct {
	device *Device
	users  int // regions and QPs
}

// AllocPD implements verbs.Device.
func (d *Device) AllocPD() (verbs.PD, error) {
	pd := &domain{device: d}
	err := d.create("ibv_alloc_pd", "protection domain", func() (any, error) { return pd, nil })
	if err != nil {
		return nil, err
	}
	return pd, nil
}

// Dealloc implements verbs.PD.
func (p *domain) Dealloc() error {
	return p.device.host.fabric.destroy("ibv_dealloc_pd", p, p.users)
}

// region is a memory region. A key is never given out again soon.
type region struct {
	pd     *domain
	mem    []byte
	access verbs.Access
	key    uint32
	posted int  // entries that name it
	dead   bool // a peer invalidated it

	asked    func(addr uint64, n uint32) // of a region that Withhold was called for
	supplied []span
}

// span is what an RDMA READ names.
type span struct {
	addr uint64
	n    uint32
}

// Withhold has RDMA READs of a region wait until Supply is called for what they name.
// asked is told of each when it begins; it must not call the fabric.
func Withhold(mr verbs.MR, asked func(addr uint64, n uint32)) {
	r := mr.(*region)
	f := r.pd.device.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	r.asked = asked
}

// Supply lets an RDMA READ of n bytes from addr on have what is there.
func Supply(mr verbs.MR, addr uint64, n uint32) {
	r := mr.(*region)
	f := r.pd.device.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	r.supplied = append(r.supplied, span{addr, n})
	f.wake.Signal()
}

// Register implements verbs.PD.
func (p *domain) Register(mem []byte, access verbs.Access) (verbs.MR, error) {
	d := p.device
	r := &region{pd: p, mem: mem, access: access}
	err := d.create("ibv_reg_mr", "memory region", func() (any, error) {
		if len(mem) == 0 || uint64(len(mem)) > d.options.Caps.MaxRegion {
			return nil, errInvalid
		}
		d.nextKey += 1 + d.host.fabric.random.Uint32N(200)
		r.key = d.nextKey
		d.regions[r.key] = r
		p.users++
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// LKey implements verbs.MR.
func (r *region) LKey() uint32 { return r.key }

// RKey implements verbs.MR.
func (r *region) RKey() uint32 {
	if r.access&(verbs.AccessRemoteRead|verbs.AccessRemoteWrite) == 0 {
		return 0
	}
	return r.key
}

// Deregister implements verbs.MR.
func (r *region) Deregister() error {
	f := r.pd.device.host.fabric
	err := f.enter("ibv_dereg_mr")
	defer f.mu.Unlock()
	if r.posted > 0 {
		f.breach("%s: a memory region is deregistered while %d posted entries name it", r.pd.device.host.name, r.posted)
	}
	if err := f.destroyLocked("ibv_dereg_mr", r, 0, err); err != nil {
		return err
	}
	delete(r.pd.device.regions, r.key)
	r.pd.users--
	return nil
}

// bytes is n bytes at an address of the region; nil if they are not in it.
func (r *region) bytes(addr uint64, n uint32) []byte {
	offset := addr - verbs.Addr(r.mem)
	if offset > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-offset {
		return nil
	}
	return r.mem[offset:][:n:n]
}

// local is the memory of a segment; nil if the QP may not use it so.
func (q *qp) local(s verbs.SGE, need verbs.Access) []byte {
	r := q.device.regions[s.LKey]
	if r == nil || r.dead || r.pd != q.pd || r.access&need != need {
		return nil
	}
	return r.bytes(s.Addr, s.Len)
}

// remote is the memory that a peer names to this QP; nil if it may not.
func (q *qp) remote(key uint32, addr uint64, n uint32, need verbs.Access) []byte {
	r := q.device.regions[key]
	if r == nil || r.dead || r.pd != q.pd || r.access&need != need {
		return nil
	}
	return r.bytes(addr, n)
}

// named counts the entries that name the region of a segment, so that it is not
// deregistered under them.
func (q *qp) named(s verbs.SGE, by int) {
	if r := q.device.regions[s.LKey]; r != nil {
		r.posted += by
	}
}

// Reachable returns how many regions of the device an initiator could write to or read
// from by its own RDMA operations through any of the device's QPs, if it had guessed
// all keys and addresses.
func (d *Device) Reachable() (n int) {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range d.regions {
		for _, q := range f.qps {
			if q.device == d && (q.remote(r.key, verbs.Addr(r.mem), 1, verbs.AccessRemoteWrite) != nil ||
				q.remote(r.key, verbs.Addr(r.mem), 1, verbs.AccessRemoteRead) != nil) {
				n++
				break
			}
		}
	}
	return n
}

// Regions returns how many memory regions the device knows.
func (d *Device) Regions() int {
	f := d.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(d.regions)
}
