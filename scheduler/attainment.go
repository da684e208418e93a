package scheduler

import "slices"

// historyPeriods is how many periods an attainment remembers.
const historyPeriods = 60

// PeriodResult is what an entity got in one period, in tokens.
type PeriodResult struct {
	Reservation int64
	Offered     int64
	Served      int64
	Yielded     int64 // of the reservation, given back unused
}

// Met reports whether the reservation was kept: all of it was served, or all
// that was asked for, or what is missing was given back.
func (r PeriodResult) Met() bool { return r.Served+r.Yielded >= min(r.Reservation, r.Offered) }

// attainment is a ring of the last periods.
type attainment struct {
	periods    []PeriodResult
	count      int
	fulfilment Fulfilment
}

// Fulfilment counts the periods with a reservation since an entity appeared: those
// in which it was kept, and those in which it was not. Unused are the last ones in a row
// in which less was asked for than is reserved (Haechi's alert: it reserves more than it
// needs, and others could have that).
type Fulfilment struct{ Met, Missed, Unused int64 }

func (a *attainment) add(s clientTotals, reservation int64) {
	r := PeriodResult{reservation, s.offered, s.served, s.yielded}
	if len(a.periods) < historyPeriods {
		a.periods = append(a.periods, r)
	} else {
		a.periods[a.count%historyPeriods] = r
	}
	a.count++
	if a.fulfilment.Unused++; r.Offered >= reservation {
		a.fulfilment.Unused = 0
	}
	switch {
	case reservation == 0:
	case r.Met():
		a.fulfilment.Met++
	default:
		a.fulfilment.Missed++
	}
}

// Fulfilment returns how often an entity's reservation was kept; zeros if there is no
// such entity.
func (c *Coordinator) Fulfilment(entity string) Fulfilment {
	if m := c.byKey[entity]; m != nil {
		return m.attainment.fulfilment
	}
	return Fulfilment{}
}

// Attainment returns the last periods of an entity, the newest last; nil if
// there is no such entity.
func (c *Coordinator) Attainment(entity string) []PeriodResult {
	m := c.byKey[entity]
	if m == nil {
		return nil
	}
	a := &m.attainment
	oldest := a.count % max(1, len(a.periods))
	return slices.Concat(a.periods[oldest:], a.periods[:oldest])
}
