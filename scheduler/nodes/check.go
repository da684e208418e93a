package nodes

import (
	"fmt"

	"lunar/scheduler"
	"lunar/scheduler/pshift"
)

// The bounds of what nodes say: with them nothing overflows.
const (
	numbers   = 1 << 40 // of entities and devices
	mostCount = 1 << 48 // tokens
	mostRate  = 1 << 40 // tokens/s
	mostNodes = 1 << 12
	salts     = 1 << 22 // after so many nodes that came, numbers are those of the first one again
)

// within refuses what is less than 0 or more than most.
func within(what string, most int64, all ...int64) error {
	for _, v := range all {
		if v < 0 || v > most {
			return fmt.Errorf("%s: found %d, expected 0 to %d", what, v, most)
		}
	}
	return nil
}

// check refuses what no node says.
func (r *Report) check() error {
	for i := range r.Entities {
		e := &r.Entities[i]
		limit := e.Limit
		if limit == pshift.Unlimited {
			limit = 0
		}
		if err := within("entity "+e.Key, mostRate, e.Number, e.Reservation, limit); err != nil {
			return err
		}
		if err := within("share of entity "+e.Key, scheduler.Whole, e.Share); err != nil {
			return err
		}
		if e.Level > scheduler.NexusLevel {
			return fmt.Errorf("entity %s: found level %d, expected one of those that there are", e.Key, e.Level)
		}
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		if err := within("device "+d.Name, mostCount, d.Done, d.Capacity, d.Throttled, d.Residual); err != nil {
			return err
		}
		if err := within("device "+d.Name, numbers-1, d.Number, d.Threads); err != nil {
			return err
		}
		last := int64(-1)
		for n := range d.Uses {
			u := &d.Uses[n]
			if uint64(u.Offered|u.Served|u.Hits|u.Yielded|u.Queued) >= mostCount {
				return fmt.Errorf("device %s, entity %d: found %+v, expected counts below %d", d.Name, u.Entity, *u, int64(mostCount))
			}
			if u.Entity <= last || u.Entity >= numbers {
				return fmt.Errorf("device %s: found entity %d behind %d, expected ascending ones", d.Name, u.Entity, last)
			}
			last = u.Entity
		}
	}
	return nil
}

// checkGrant refuses what no controller says.
func checkGrant(g *scheduler.NodeGrant) error {
	if err := within("times of a grant", 10*period, g.Left, g.Lasts); err != nil {
		return err
	}
	if err := within("nodes of a grant", mostNodes, g.Nodes); err != nil {
		return err
	}
	for i := range g.Parts {
		if err := within("reservation of a grant", mostCount, g.Parts[i].Reserved); err != nil {
			return err
		}
		if err := within("share of a grant", scheduler.Whole, g.Parts[i].Share); err != nil {
			return err
		}
	}
	for i := range g.Pools {
		if err := within("pool of a grant", mostCount, g.Pools[i].Capacity, g.Pools[i].Tokens); err != nil {
			return err
		}
		if err := within("window of a grant", scheduler.Whole, g.Pools[i].Window); err != nil {
			return err
		}
	}
	return nil
}
