package nodes

import (
	"slices"
	"strings"

	"lunar/scheduler"
)

// Show is the message that asks a controller for its Status, which it answers as it likes.
func Show() []byte { return encode(nil, IsShow, func(*wire) {}) }

// List is the message that asks a node for the flows of its sessions.
func List() []byte { return encode(nil, IsList, func(*wire) {}) }

// Status is what a controller knows.
type Status struct {
	Term     uint64
	Nodes    []string // that report
	Silent   []string // that live and do not: each is taken to have its part of all limits
	Entities []EntityStatus
	Devices  []scheduler.DeviceStatus // that several nodes use
	More     int                      // entities that are not named
}

// EntityStatus is an entity over all nodes.
type EntityStatus struct {
	Key         string
	Level       string
	Reservation int64                    // tokens/s
	Limit       int64                    // tokens/s; 0: none
	Quotas      []Quota                  // by node
	Periods     []scheduler.PeriodResult // the last ones, the newest last
	Fulfilment  scheduler.Fulfilment
}

// Quota is a node's part of an entity.
type Quota struct {
	Node     string
	Reserved int64   // tokens that are left of the reservation, in this period
	Limit    float64 // the part of the limit
	Served   int64   // tokens, in the last period
	Devices  []string
}

// mostShown bounds the entities of a Status, and shownPeriods their periods.
const (
	mostShown    = 2000
	shownPeriods = 10
)

// Status returns what the controller knows.
func (c *Controller) Status() Status {
	s := Status{Term: c.config.Term, Nodes: c.reporting(), Silent: c.silent(), Devices: c.coord.Devices()}
	slices.Sort(s.Nodes)
	all := c.coord.Entities()
	if s.More = max(0, len(all)-mostShown); s.More > 0 {
		all = all[:mostShown]
	}
	for i := range all {
		e := &all[i]
		one := EntityStatus{Key: e.Key, Level: e.Level.String(), Reservation: e.Reservation, Limit: e.Limit, Fulfilment: e.Fulfilment}
		one.Periods = e.Periods[max(0, len(e.Periods)-shownPeriods):]
		for _, on := range e.On {
			q := Quota{Node: c.slots[on.Thread], Reserved: on.Reserved, Limit: float64(on.Share) / scheduler.Whole, Served: on.Served}
			for _, d := range on.Devices {
				_, device, foreign := strings.Cut(d, "\x00")
				if !foreign {
					device = d
				}
				q.Devices = append(q.Devices, device)
			}
			one.Quotas = append(one.Quotas, q)
		}
		s.Entities = append(s.Entities, one)
	}
	return s
}
