package reservation

// checkType refuses scopes and types that there are not.
func (r *Request) checkType() *Refusal {
	switch {
	case r.Scope != scopeLogicalUnit:
		return &Refusal{InvalidCDB, 2, 7}
	case !r.Type.Valid():
		return &Refusal{InvalidCDB, 2, 3}
	}
	return nil
}

// applyReserve is RESERVE (SPC-4 clause 5.13.9). Who holds such a reservation
// already may ask again.
func (s *State) applyReserve(r *Request) (Change, *Refusal) {
	if refusal := r.checkType(); refusal != nil {
		return Change{}, refusal
	}
	if s.kind != 0 {
		if s.Holds(r.From) && s.kind == r.Type {
			return Change{Next: s}, nil
		}
		return Change{}, errConflict
	}
	c := Change{Next: s.next()}
	c.Next.reserve(r.From, r.Type)
	return c, nil
}

// applyRelease is RELEASE (SPC-4 clause 5.13.11.2). Who holds nothing has
// nothing to release, which is no error.
func (s *State) applyRelease(r *Request) (Change, *Refusal) {
	if !s.Holds(r.From) {
		return Change{Next: s}, nil
	}
	if r.Scope != scopeLogicalUnit || r.Type != s.kind {
		return Change{}, &Refusal{Reason: InvalidRelease}
	}
	c := Change{Next: s.next()}
	c.Next.release()
	if kinds[s.kind].members {
		c.tellRegistered(r, ReservationsReleased)
	}
	return c, nil
}

// Cleared is what an administrator's CLEAR makes of the state, who is no nexus:
// all registrations and the reservation are gone, and those that were registered
// are told.
func (s *State) Cleared() Change {
	c, _ := s.applyClear(&Request{})
	return c
}

// applyClear is CLEAR (SPC-4 clause 5.13.11.6): nothing is left.
func (s *State) applyClear(r *Request) (Change, *Refusal) {
	c := Change{Next: s.next()}
	c.Next.generation++
	c.Next.release()
	gone := c.Next.remove(func(Registration) bool { return true })
	c.tell(r, ReservationsPreempted, gone...)
	return c, nil
}
