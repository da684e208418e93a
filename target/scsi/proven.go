package scsi

import "lunar/target/scsi/reservation"

// claimant is an initiator port together with who has proven to be behind it.
type claimant struct {
	initiator string
	proven    any
}

func (n *Nexus) claimant() claimant { return claimant{n.Initiator, n.Proven} }

// asker is whose the list identifiers of copies are: those of a claimant, but of one
// I_T nexus where nothing is proven.
type asker struct {
	claimant
	nexus reservation.Nexus // zero if the claimant has proven who it is
}

func (n *Nexus) asker() asker {
	if n.Proven != nil {
		return asker{claimant: n.claimant()}
	}
	return asker{n.claimant(), n.it()}
}

// registrant is an initiator port at a target, whichever of its ports.
type registrant struct{ initiator, target string }

// Registrant returns who has proven to be behind an initiator port that is registered
// through a target, as far as that is known: not of registrations of before the start
// until their initiators have come, and nil of those who have proven nothing.
func (lu *LogicalUnit) Registrant(initiator, target string) any {
	if len(lu.reservations.Load().Registrations()) == 0 {
		return nil
	}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	return lu.mu.registrants[registrant{initiator, target}]
}

// recognize notes who is behind the registrations, of those who are here, and forgets
// who was behind others. The caller holds mu.
func (lu *LogicalUnit) recognize() {
	registrations := lu.reservations.Load().Registrations()
	if len(registrations) == 0 {
		lu.mu.registrants = nil
		return
	}
	known := make(map[registrant]any, len(registrations))
	for _, r := range registrations {
		it := registrant{r.Initiator, r.Target}
		known[it] = lu.mu.registrants[it]
	}
	for n := range lu.mu.nexuses {
		it := registrant{n.Initiator, n.Target}
		if who, registered := known[it]; registered && who == nil {
			known[it] = n.Proven
		}
	}
	lu.mu.registrants = known
}
