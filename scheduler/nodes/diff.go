package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"lunar/scheduler"
)

// diff is what has changed from one report of a node's coordinator to the next. shared says
// which devices other nodes use, too.
func diff(was, now *scheduler.GateReport, shared func(device string) bool) (r Report) {
	for i := range now.Servers {
		s := &now.Servers[i]
		before := serverOf(was, s)
		d := Device{
			Name: s.Device.Name, Shared: shared(s.Device.Name), Backlogged: s.Backlogged, Number: s.Number, Threads: int64(s.Threads),
			Done: s.Done - before.Done, Capacity: s.Capacity, Throttled: s.Throttled, Residual: s.Residual,
		}
		r.compare(&d, before.Entities, s.Entities)
		r.Devices = append(r.Devices, d)
	}
	slices.SortFunc(r.Entities, func(a, b Entity) int { return cmp.Compare(a.Number, b.Number) })
	r.Entities = slices.CompactFunc(r.Entities, func(a, b Entity) bool { return a.Number == b.Number }) // it has come to two devices
	slices.SortFunc(r.Devices, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

func entityOf(e *scheduler.EntityReport) Entity {
	return Entity{Number: e.Number, Key: e.Entity, Level: e.Level, Reservation: e.Reservation, Limit: e.Limit, Share: e.Share}
}

// serverOf is the same server in another report; a new one has no counts.
func serverOf(r *scheduler.GateReport, s *scheduler.ServerReport) *scheduler.ServerReport {
	for i := range r.Servers {
		if o := &r.Servers[i]; o.Device.Name == s.Device.Name && o.Number == s.Number {
			return o
		}
	}
	return &scheduler.ServerReport{}
}

// compare tells what has changed of entities on a device, both in order of their numbers.
func (r *Report) compare(d *Device, was, now []scheduler.EntityReport) {
	none := scheduler.EntityReport{}
	for len(was) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(was) > 0 && was[0].Number < now[0].Number:
			d.Uses = append(d.Uses, Use{Entity: was[0].Number, Gone: true})
			was = was[1:]
		case len(was) == 0 || now[0].Number < was[0].Number:
			d.Uses = append(d.Uses, useOf(&none, &now[0]))
			r.Entities = append(r.Entities, entityOf(&now[0]))
			now = now[1:]
		default:
			if u := useOf(&was[0], &now[0]); u != useOf(&was[0], &was[0]) {
				d.Uses = append(d.Uses, u)
			}
			e, before := entityOf(&now[0]), entityOf(&was[0])
			if before.Share = e.Share; e != before { // its share is the controller's to say
				r.Entities = append(r.Entities, e)
			}
			was, now = was[1:], now[1:]
		}
	}
}

func useOf(was, now *scheduler.EntityReport) Use {
	return Use{
		Entity: now.Number, Backlogged: now.Backlogged, Root: now.Root, Ebbing: now.Ebbing, Queued: now.Queued,
		Offered: now.Offered - was.Offered, Served: now.Served - was.Served, Hits: now.Hits - was.Hits, Yielded: now.Yielded - was.Yielded,
	}
}

// begin makes a whole report one from which counting begins.
func (r *Report) begin() {
	for i := range r.Devices {
		d := &r.Devices[i]
		d.Done = 0
		for n := range d.Uses {
			u := &d.Uses[n]
			u.Offered, u.Served, u.Hits, u.Yielded = 0, 0, 0, 0
		}
	}
}

// mirror is a node's coordinator as the controller knows it.
type mirror struct {
	number   uint64 // of the newest report
	salt     int64  // that numbers have here, so that a node that has come again has others
	entities map[int64]Entity
	report   scheduler.GateReport
	device   func(name string, shared bool) *scheduler.Device
}

// apply takes a report in. It fails, and nothing changes, if the report is based on another
// one than the newest, or says what no node can say. Counts never fall.
func (m *mirror) apply(r *Report) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Base != 0 && r.Base != m.number {
		return fmt.Errorf("found a report that goes on from number %d, expected %d", r.Base, m.number)
	}
	n := news{told: map[int64]Entity{}, known: m.entities, whole: r.Base == 0, salt: m.salt}
	if n.whole {
		n.known = map[int64]Entity{}
	}
	for _, e := range r.Entities {
		n.told[e.Number] = e
	}
	now, err := m.servers(r, &n)
	if err != nil {
		return err
	}
	for _, i := range n.stay { // now that nothing is refused any more
		update(now[i].Entities, r.Devices[i].Uses, m.salt)
	}
	maps.Copy(n.known, n.told)
	m.number, m.entities, m.report.Servers = r.Number, n.known, now
	m.forget()
	return nil
}

// servers are those of a report, with their entities as they were where these stay, which is
// mostly so, and otherwise as they are.
func (m *mirror) servers(r *Report, n *news) (now []scheduler.ServerReport, err error) {
	for i := range r.Devices {
		d := &r.Devices[i]
		s := scheduler.ServerReport{
			Device: m.device(d.Name, d.Shared), Number: d.Number + m.salt, Backlogged: d.Backlogged, Throttled: d.Throttled,
			Residual: d.Residual, Threads: int(d.Threads), Capacity: d.Capacity,
		}
		before := serverOf(&m.report, &s)
		s.Done, s.Entities = before.Done+d.Done, before.Entities
		if !n.whole && len(n.told) == 0 && stay(s.Entities, d.Uses, m.salt) {
			n.stay = append(n.stay, i)
		} else if s.Entities, err = n.apply(s.Entities, d.Uses); err != nil {
			return nil, fmt.Errorf("device %s: %w", d.Name, err)
		}
		now = append(now, s)
	}
	return now, nil
}

// stay reports whether all that is said is of entities that are there and stay there.
func stay(was []scheduler.EntityReport, uses []Use, salt int64) bool {
	at := 0
	for i := range uses {
		number := uses[i].Entity + salt
		for at < len(was) && was[at].Number < number {
			at++
		}
		if uses[i].Gone || at == len(was) || was[at].Number != number {
			return false
		}
	}
	return true
}

// update adds what is said of entities that stay.
func update(all []scheduler.EntityReport, uses []Use, salt int64) {
	at := 0
	for i := range uses {
		for all[at].Number != uses[i].Entity+salt {
			at++
		}
		uses[i].add(&all[at])
	}
}

// add brings what is known of an entity up to date.
func (u *Use) add(e *scheduler.EntityReport) {
	e.Root, e.Backlogged, e.Ebbing, e.Queued = u.Root, u.Backlogged, u.Ebbing, u.Queued
	e.Offered += u.Offered
	e.Served += u.Served
	e.Hits += u.Hits
	e.Yielded += u.Yielded
}

// news are what a report says of entities.
type news struct {
	told, known map[int64]Entity
	whole       bool // there are no others than those that the report names
	salt        int64
	stay        []int // the devices whose entities stay
}

func (n *news) finds(number int64) bool {
	_, told := n.told[number]
	_, known := n.known[number]
	return told || known
}

// apply is the other way round of compare.
func (n *news) apply(was []scheduler.EntityReport, uses []Use) ([]scheduler.EntityReport, error) {
	now := make([]scheduler.EntityReport, 0, len(was)+len(uses))
	for len(was) > 0 || len(uses) > 0 {
		if len(uses) == 0 || len(was) > 0 && was[0].Number-n.salt < uses[0].Entity {
			if !n.whole {
				now = append(now, n.define(was[0]))
			}
			was = was[1:]
			continue
		}
		var e scheduler.EntityReport
		u := &uses[0]
		uses = uses[1:]
		if len(was) > 0 && was[0].Number-n.salt == u.Entity {
			e, was = was[0], was[1:]
		}
		if u.Gone {
			continue
		}
		if e.Entity == "" && !n.finds(u.Entity) {
			return nil, fmt.Errorf("found entity number %d, expected one that the node has told of", u.Entity)
		}
		e.Number = u.Entity + n.salt
		u.add(&e)
		now = append(now, n.define(e))
	}
	return now, nil
}

// define gives an entity what the report says that it is.
func (n *news) define(e scheduler.EntityReport) scheduler.EntityReport {
	if len(n.told) == 0 && e.Entity != "" {
		return e
	}
	d, ok := n.told[e.Number-n.salt]
	if !ok && e.Entity != "" {
		return e
	}
	if !ok {
		d = n.known[e.Number-n.salt]
	}
	e.Entity, e.Level, e.Reservation, e.Limit = d.Key, d.Level, d.Reservation, d.Limit
	return e
}

// forget drops entities that the node does not have any more, once there are many.
func (m *mirror) forget() {
	used := 0
	for i := range m.report.Servers {
		used += len(m.report.Servers[i].Entities)
	}
	if len(m.entities) < 2*used+64 {
		return
	}
	there := map[int64]bool{}
	for i := range m.report.Servers {
		for _, e := range m.report.Servers[i].Entities {
			there[e.Number-m.salt] = true
		}
	}
	maps.DeleteFunc(m.entities, func(number int64, _ Entity) bool { return !there[number] })
}
