package reservation

// applyPreempt is PREEMPT and PREEMPT AND ABORT (SPC-4 clauses 5.13.11.4 and
// 5.13.11.5). What they do depends on whose key is named: the holder's takes the
// reservation over, any other removes registrations only.
func (s *State) applyPreempt(r *Request) (Change, *Refusal) {
	all := s.kind.Shared() && r.ServiceKey == 0
	switch {
	case all, s.kind != 0 && !s.kind.Shared() && r.ServiceKey == s.ReservationKey():
		return s.takeOver(r, all)
	case r.ServiceKey == 0:
		return Change{}, invalidList(8, -1)
	}
	return s.removeKey(r)
}

// takeOver removes the registrations with the key, or all, other than the one
// that asks, which gets the reservation with a type of its choice.
func (s *State) takeOver(r *Request, all bool) (Change, *Refusal) {
	if refusal := r.checkType(); refusal != nil {
		return Change{}, refusal
	}
	c := Change{Next: s.next()}
	c.Next.generation++
	gone := c.Next.remove(func(reg Registration) bool {
		return reg.Nexus != r.From && (all || reg.Key == r.ServiceKey)
	})
	c.Next.reserve(r.From, r.Type)
	c.tell(r, RegistrationsPreempted, gone...)
	if r.Type != s.kind {
		c.tellRegistered(r, ReservationsReleased)
	}
	c.abort(r, gone)
	return c, nil
}

// removeKey removes the registrations with the key, be it that of the nexus that
// asks. The reservation stays, but for a shared one that nobody is left to hold.
func (s *State) removeKey(r *Request) (Change, *Refusal) {
	c := Change{Next: s.next()}
	gone := c.Next.remove(func(reg Registration) bool { return reg.Key == r.ServiceKey })
	if len(gone) == 0 {
		return Change{}, errConflict
	}
	c.Next.generation++
	c.tell(r, RegistrationsPreempted, gone...)
	c.abort(r, gone)
	return c, nil
}

func (c *Change) abort(r *Request, gone []Nexus) {
	if r.Action == PreemptAndAbort {
		c.Abort = gone
	}
}
