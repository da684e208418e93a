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
	list(w, &r.Entities, 5, func(e *Entity) {
		w.gap(&e.Number, &last)
		w.text(&e.Key)
		level := uint64(e.Level)
		w.uint(&level)
		e.Level = scheduler.Level(level)
		w.int(&e.Reservation)
		w.int(&e.Limit)
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
	list(w, &d.Uses, 2, func(u *Use) {
		w.gap(&u.Entity, &last)
		u.wire(w)
	})
}

// wire writes what is mostly not there only where it is.
func (u *Use) wire(w *wire) {
	counts, hits, yielded, queued := u.Offered != 0 || u.Served != 0, u.Hits != 0, u.Yielded != 0, u.Queued != 0
	w.flags(&u.Gone, &u.Backlogged, &u.Root, &counts, &hits, &yielded, &queued)
	if counts {
		beside := u.Served - u.Offered // as much is served as is offered
		w.int(&u.Offered)
		w.signed(&beside)
		u.Served = u.Offered + beside
	}
	for _, v := range [...]struct {
		there bool
		value *int64
	}{{hits, &u.Hits}, {yielded, &u.Yielded}, {queued, &u.Queued}} {
		if v.there {
			w.int(v.value)
		}
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
