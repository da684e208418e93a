package nodes

import "lunar/scheduler"

// Append writes the message behind to.
func (a *Ask) Append(to []byte) []byte { return encode(to, IsAsk, a.wire) }

// Parse reads a message of kind IsAsk or IsSuperseded.
func (a *Ask) Parse(message []byte) error { return decode(message, a.wire) }

func (a *Ask) wire(w *wire) {
	w.uint(&a.Term)
	w.uint(&a.Base)
}

// Append writes the message behind to.
func (r *Report) Append(to []byte) []byte { return encode(to, IsReport, r.wire) }

// Parse reads a message of kind IsReport. It uses the memory that the report has.
func (r *Report) Parse(message []byte) error { return decode(message, r.wire) }

func (r *Report) wire(w *wire) {
	w.uint(&r.Number)
	w.uint(&r.Base)
	last := int64(0)
	list(w, &r.Entities, 6, func(e *Entity) {
		w.gap(&e.Number, &last)
		w.text(&e.Key)
		level := uint64(e.Level)
		w.uint(&level)
		e.Level = scheduler.Level(level)
		w.int(&e.Reservation)
		w.int(&e.Limit)
		w.int(&e.Share)
	})
	list(w, &r.Devices, 9, func(d *Device) { d.wire(w) })
}

func (d *Device) wire(w *wire) {
	w.text(&d.Name)
	w.flags(&d.Shared, &d.Backlogged)
	for _, v := range []*int64{&d.Number, &d.Threads, &d.Done, &d.Capacity, &d.Throttled, &d.Residual} {
		w.int(v)
	}
	last := int64(0)
	list(w, &d.Uses, 2, func(u *Use) { u.wire(w, &last) })
}

// The flags of a Use: what it says, and which counts are there.
const (
	isGone = 1 << iota
	isBacklogged
	isRoot
	hasCounts
	hasHits
	hasYielded
	hasQueued
	isEbbing
)

func (u *Use) flags() (f byte) {
	for i, is := range [...]bool{u.Gone, u.Backlogged, u.Root, u.Offered|u.Served != 0, u.Hits != 0, u.Yielded != 0, u.Queued != 0, u.Ebbing} {
		if is {
			f |= 1 << i
		}
	}
	return f
}

// wire writes what is mostly not there only where it is. A controller reads more of these than
// of all else.
func (u *Use) wire(w *wire, last *int64) {
	f := byte(0)
	if w.reading {
		*u = Use{}
	} else {
		f = u.flags()
	}
	w.gap(&u.Entity, last)
	w.byte(&f)
	u.Gone, u.Backlogged, u.Root, u.Ebbing = f&isGone != 0, f&isBacklogged != 0, f&isRoot != 0, f&isEbbing != 0
	if f&hasCounts != 0 {
		beside := u.Served - u.Offered // as much is served as is offered
		w.int(&u.Offered)
		w.signed(&beside)
		u.Served = u.Offered + beside
	}
	if f&hasHits != 0 {
		w.int(&u.Hits)
	}
	if f&hasYielded != 0 {
		w.int(&u.Yielded)
	}
	if f&hasQueued != 0 {
		w.int(&u.Queued)
	}
}

// gap is a number as its distance from the one before.
func (w *wire) gap(v, last *int64) {
	gap := *v - *last
	w.int(&gap)
	*v = *last + gap
	*last = *v
}

// Append writes the message behind to.
func (g *Grant) Append(to []byte) []byte { return encode(to, IsGrant, g.wire) }

// Parse reads a message of kind IsGrant. It uses the memory that the grant has.
func (g *Grant) Parse(message []byte) error { return decode(message, g.wire) }

func (g *Grant) wire(w *wire) {
	w.uint(&g.Term)
	w.uint(&g.Report)
	w.flags(&g.Period)
	w.int(&g.Left)
	w.int(&g.Lasts)
	w.int(&g.Nodes)
	last := int64(0)
	list(w, &g.Parts, 3, func(p *scheduler.Part) {
		w.gap(&p.Number, &last)
		w.int(&p.Reserved)
		w.int(&p.Share)
	})
	list(w, &g.Pools, 4, func(p *scheduler.PoolPart) {
		w.text(&p.Device)
		w.int(&p.Capacity)
		w.int(&p.Tokens)
		w.int(&p.Window)
	})
}
