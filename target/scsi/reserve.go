package scsi

import "lunar/target/scsi/reservation"

// reserve is RESERVE(6) and RESERVE(10) (SPC-2 clause 7.21) with the
// compatibility rules of SPC-4 clause 5.13.3 (CRH): who has a part in a
// persistent reservation has what he asks for, and anyone else meets a conflict
// while nexuses are registered.
func reserve(c *Command) {
	c.register(func() outcome { return c.Nexus.LU.reserve(c.Nexus) })
}

func (lu *LogicalUnit) reserve(n *Nexus) outcome {
	if len(lu.reservations.Load().Registrations()) > 0 {
		return lu.compatible(n)
	}
	switch _, holder := lu.Reservations(); holder {
	case n.Identity():
		return (*Command).Good
	case reservation.Nexus{}:
		return lu.setReserve(n.Identity())
	}
	return conflict
}

// setReserve has a nexus hold RESERVE; zero: nobody.
func (lu *LogicalUnit) setReserve(n reservation.Nexus) outcome {
	err := lu.lasting(nil, func(h *Heritage) { h.Reserved = n }, func() {
		lu.mu.reserved = n
		lu.restrictAll()
	})
	if err != nil {
		return lu.unsaved("who holds RESERVE cannot be saved: it stays as it was", err)
	}
	return (*Command).Good
}

// compatible is how RESERVE and RELEASE end while nexuses are registered: they
// never do anything.
func (lu *LogicalUnit) compatible(n *Nexus) outcome {
	s := lu.reservations.Load()
	if s.Type() != 0 && s.Rights(n.Identity()) == reservation.All {
		return (*Command).Good
	}
	return conflict
}

// release is RELEASE(6) and RELEASE(10). Who holds nothing releases nothing.
func release(c *Command) {
	c.register(func() outcome { return c.Nexus.LU.release(c.Nexus) })
}

func (lu *LogicalUnit) release(n *Nexus) outcome {
	if len(lu.reservations.Load().Registrations()) > 0 {
		return lu.compatible(n)
	}
	if _, holder := lu.Reservations(); holder == n.Identity() {
		return lu.setReserve(reservation.Nexus{})
	}
	return (*Command).Good
}

// reservedByRESERVE reports whether anyone holds RESERVE.
func (lu *LogicalUnit) reservedByRESERVE() bool {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	return lu.mu.reserved != (reservation.Nexus{})
}

// endReserve ends RESERVE of anyone.
func (lu *LogicalUnit) endReserve() {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.dropReserve(lu.mu.reserved)
}

// dropReserve ends RESERVE of the nexus, as RELEASE and the loss of the nexus
// do. The caller holds mu.
func (lu *LogicalUnit) dropReserve(n reservation.Nexus) {
	if lu.mu.reserved == n && n != (reservation.Nexus{}) {
		lu.mu.reserved = reservation.Nexus{}
		lu.restrictAll()
		lu.resave()
	}
}
