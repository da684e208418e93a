package scsi

import "lunar/target/scsi/reservation"

// bars are the reasons why commands of a nexus do not run now: reservations of
// others, and the asymmetric access state of its target port. A command runs if
// its row is affected by none of those that its nexus has, so that the data path
// looks at one word.
type bars uint32

const (
	barWrite    bars = 1 << iota // persistent reservation of another: no writing
	barRead                      // and no reading
	barReserved                  // RESERVE of another
	barLegacy                    // RESERVE of anyone: the two kinds of reservation exclude each other
	barStandby                   // access states, in which ever less runs
	barUnavailable
	barTransition
	barOffline
)

// Conflict says of a row which persistent reservations of other nexuses it
// conflicts with (SPC-4 table 65, SBC-3 table 13).
type Conflict uint8

// The kinds of conflict.
const (
	// ConflictByAccess: AccessRead with exclusive access, all others with any.
	ConflictByAccess Conflict = iota
	// ConflictExclusive: with exclusive access only.
	ConflictExclusive
	// ConflictNever: with none, but with RESERVE of another.
	ConflictNever
	// ConflictLegacy: with none, but with RESERVE of anyone.
	ConflictLegacy
	// ConflictNothing: with neither.
	ConflictNothing
)

// Reach says of a row in which asymmetric access states of its target port it
// runs (SPC-4 clause 5.15.2.4).
type Reach uint8

// The reaches.
const (
	ReachActive  Reach = iota // active states only
	ReachStandby              // standby, too
	ReachAlways               // all
)

var conflictBars = [...]bars{
	ConflictExclusive: barRead | barReserved,
	ConflictNever:     barReserved,
	ConflictLegacy:    barLegacy,
	ConflictNothing:   0,
}

var reachBars = [...]bars{
	ReachActive:  barStandby | barUnavailable | barTransition | barOffline,
	ReachStandby: barUnavailable | barTransition | barOffline,
	ReachAlways:  0,
}

// barsOf returns what keeps the row's command from running.
func (r *Row) barsOf() bars {
	stopped := reachBars[r.Reach]
	switch {
	case r.Conflict != ConflictByAccess:
		return stopped | conflictBars[r.Conflict]
	case r.Access == AccessRead:
		return stopped | barRead | barReserved
	}
	return stopped | barRead | barWrite | barReserved
}

// refuse ends a command that bars stand against.
func (c *Command) refuse(b bars) {
	if s := notAccessible(b); s != nil {
		c.Fail(s)
		return
	}
	c.FailStatus(ReservationConflict)
}

// rebar derives the bars of all nexuses anew. The caller holds mu.
func (lu *LogicalUnit) rebar() {
	for n := range lu.mu.nexuses {
		lu.bar(n)
	}
}

// bar derives the bars of one nexus. The caller holds mu.
func (lu *LogicalUnit) bar(n *Nexus) {
	n.barred.Store(uint32(lu.reservationBars(n) | accessBars[lu.access.Load().state(n.TargetTag)]))
}

// currentBars returns the bars for a copy, which may outlive the session of the
// nexus: who is fenced off then must be stopped all the same.
func (n *Nexus) currentBars() bars {
	if n.ended.Load() {
		n.LU.mu.Lock()
		defer n.LU.mu.Unlock()
		n.LU.bar(n)
	}
	return bars(n.barred.Load())
}

func (lu *LogicalUnit) reservationBars(n *Nexus) bars {
	if lu.mu.reserved != (reservation.Nexus{}) {
		if lu.mu.reserved != n.it() {
			return barReserved | barLegacy
		}
		return barLegacy
	}
	var b bars
	rights := lu.reservations.Load().Rights(n.it())
	if rights&reservation.Write == 0 {
		b |= barWrite
	}
	if rights&reservation.Read == 0 {
		b |= barRead
	}
	return b
}
