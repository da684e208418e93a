package scsi

import (
	"lunar/backstore"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

// restrictions are the reasons why commands of a nexus do not run now: reservations of
// others, and the asymmetric access state of its target port. A command runs if
// its row is affected by none of those that its nexus has, so that the data path
// looks at one word.
type restrictions uint32

const (
	restrictWrite    restrictions = 1 << iota // persistent reservation of another: no writing
	restrictRead                              // and no reading
	restrictReserved                          // RESERVE of another
	restrictLegacy                            // RESERVE of anyone: the two kinds of reservation exclude each other
	restrictStandby                           // access states, in which ever less runs
	restrictUnavailable
	restrictTransition
	restrictOffline
	restrictFlux      // it is not decided which of several servers serves the unit: the command waits
	restrictRelay     // another server serves it: the command is relayed
	restrictElsewhere // another server serves it, to which nothing leads
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
	ReachDecided              // all, but not before it is decided which they are
)

var conflictRestrictions = [...]restrictions{
	ConflictExclusive: restrictRead | restrictReserved,
	ConflictNever:     restrictReserved,
	ConflictLegacy:    restrictLegacy,
	ConflictNothing:   0,
}

var reachRestrictions = [...]restrictions{
	ReachActive:  restrictStandby | restrictUnavailable | restrictTransition | restrictOffline | restrictFlux,
	ReachStandby: restrictUnavailable | restrictTransition | restrictOffline,
	ReachAlways:  0,
	ReachDecided: restrictFlux,
}

// restrictionsOf returns what keeps the row's command from running.
func (r *Row) restrictionsOf() restrictions {
	stopped := reachRestrictions[r.Reach]
	if r.relayed() {
		stopped |= restrictRelay
	}
	if r.Flags&NeedsServer != 0 {
		stopped |= restrictFlux | restrictElsewhere
	}
	switch {
	case r.Conflict != ConflictByAccess:
		return stopped | conflictRestrictions[r.Conflict]
	case r.Access == AccessRead:
		return stopped | restrictRead | restrictReserved
	}
	return stopped | restrictRead | restrictWrite | restrictReserved
}

// refuse ends a command that restrictions stand against.
func (c *Command) refuse(b restrictions) {
	if s := notAccessible(b); s != nil {
		c.Fail(s)
		return
	}
	if b&restrictElsewhere != 0 {
		c.Fail(sense.InStandby)
		return
	}
	c.FailStatus(ReservationConflict)
}

// refuses reports whether restrictions of now stand against a command of the row. What is
// being decided does not, and what another server decides.
func (n *Nexus) refuses(row *Row) bool {
	b := restrictions(n.restricted.Load()) &^ restrictRelay
	if b&restrictFlux != 0 {
		b &^= reachRestrictions[ReachActive] | restrictElsewhere
	}
	return b&row.restricted != 0
}

// restrictAll derives the restrictions of all nexuses anew. The caller holds mu.
func (lu *LogicalUnit) restrictAll() {
	for n := range lu.mu.nexuses {
		lu.restrict(n)
	}
}

// restrict derives the restrictions of one nexus. The caller holds mu.
func (lu *LogicalUnit) restrict(n *Nexus) {
	b := accessRestrictions[lu.access.Load().state(n.TargetTag)]
	switch {
	case lu.mu.carrier == nil:
		b |= lu.reservationRestrictions(n)
	case n.Remote || lu.carrierOf(n) != nil:
		b = restrictRelay
	}
	if lu.mu.holding {
		b |= restrictFlux
	}
	if lu.config.Shared && !lu.mu.serves && b&restrictRelay == 0 {
		b |= restrictElsewhere
	}
	n.restricted.Store(uint32(b))
}

// currentRestrictions returns the restrictions for a copy, which may outlive the session of the
// nexus: who is fenced off then must be stopped all the same.
func (n *Nexus) currentRestrictions() restrictions {
	if n.ended.Load() {
		n.LU.mu.Lock()
		defer n.LU.mu.Unlock()
		n.LU.restrict(n)
	}
	return restrictions(n.restricted.Load())
}

func (lu *LogicalUnit) reservationRestrictions(n *Nexus) restrictions {
	if lu.mu.reserved != (reservation.Nexus{}) {
		if lu.mu.reserved != n.Identity() {
			return restrictReserved | restrictLegacy
		}
		return restrictLegacy
	}
	var b restrictions
	rights := lu.reservations.Load().Rights(n.Identity())
	if rights&reservation.Write == 0 {
		b |= restrictWrite
	}
	if rights&reservation.Read == 0 {
		b |= restrictRead
	}
	return b
}

// CSCD is a copy source or copy destination (SPC-4 clause 3.1): a logical unit
// as the initiator that asks for the copy has access to it, and a lane into its
// store on the event thread of the command.
type CSCD struct {
	Nexus *Nexus
	Lane  backstore.Lane
}

// mayRead and mayWrite report whether the copy source or destination may be
// used.
func (u *CSCD) mayRead() bool { return u.ready(&copyReads) && u.Nexus.grants(false) }

func (u *CSCD) mayWrite() bool {
	return u.ready(&copyWrites) && u.Nexus.grants(true) && u.Nexus.LU.protection(u.Nexus, u.Nexus.LU.state.Load()) == nil
}

// copyReads and copyWrites stand for what a copy does to its source and its
// destination, which reservations and access states may forbid.
var copyReads, copyWrites = Row{Access: AccessRead}, Row{Access: AccessWrite}

func init() {
	copyReads.restricted, copyWrites.restricted = copyReads.restrictionsOf(), copyWrites.restrictionsOf()
}

// ready reports whether neither a reservation nor a state of the logical unit
// keeps commands of the row away.
func (u *CSCD) ready(row *Row) bool {
	return u.Nexus.currentRestrictions()&row.restricted == 0 && u.Nexus.LU.state.Load().unready(row) == nil
}
