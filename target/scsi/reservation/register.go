package reservation

// applyRegister is REGISTER and REGISTER AND IGNORE EXISTING KEY (SPC-4 clauses
// 5.13.7 and 5.13.11.3): a key of zero ends the registration.
func (s *State) applyRegister(r *Request) (Change, *Refusal) {
	old := s.KeyOf(r.From)
	ignore := r.Action == RegisterAndIgnoreExistingKey
	switch {
	case r.Specified && (ignore || old != 0):
		return Change{}, invalidList(20, 3)
	case !ignore && old != r.Key:
		return Change{}, errConflict
	case old == 0 && r.ServiceKey == 0:
		return Change{Next: s}, nil // there is nothing to end
	}
	affected, refusal := s.affected(r, old, ignore)
	if refusal != nil {
		return Change{}, refusal
	}
	c := Change{Next: s.next()}
	c.Next.generation++
	c.Next.persist = r.Persist
	for _, n := range affected {
		if r.ServiceKey == 0 {
			c.unregister(r, n)
		} else if !c.Next.register(n, r.ServiceKey, r.Holder) {
			return Change{}, &Refusal{Reason: TooMany}
		}
	}
	return c, nil
}

// affected returns the nexuses that a registration is about: the one that asks,
// with ALL_TG_PT those of the same initiator port with the target's other ports,
// and with SPEC_I_PT those of other initiator ports. It is as if the command had
// come by each of them, so that none but REGISTER AND IGNORE EXISTING KEY takes
// one that is registered with another key.
func (s *State) affected(r *Request, old uint64, ignore bool) ([]Nexus, *Refusal) {
	nexuses := []Nexus{r.From}
	add := func(n Nexus) *Refusal {
		key := s.KeyOf(n)
		switch {
		case n == r.From:
			return nil
		case r.ServiceKey == 0 && key == 0, old != 0 && key == 0 && !ignore:
			return nil // nothing to end, or to change
		case key != old && !ignore:
			return errConflict
		}
		nexuses = append(nexuses, n)
		return nil
	}
	for _, initiator := range append([]string{r.From.Initiator}, r.Initiators...) {
		ports := r.Ports
		if len(ports) == 0 {
			ports = []uint16{r.From.Port}
		}
		for _, port := range ports {
			if refusal := add(Nexus{initiator, r.From.Target, port}); refusal != nil {
				return nil, refusal
			}
		}
	}
	return nexuses, nil
}

// unregister ends one registration. A reservation that the nexus alone holds ends
// with it, which registered nexuses that shared its rights are told.
func (c *Change) unregister(r *Request, n Nexus) {
	s := c.Next
	held, t := s.Holds(n) && !s.kind.Shared(), s.kind
	s.remove(func(reg Registration) bool { return reg.Nexus == n })
	if !held {
		return
	}
	s.release()
	if kinds[t].members {
		c.tellRegistered(r, ReservationsReleased)
	}
}

// applyMove is REGISTER AND MOVE (SPC-4 clause 5.13.8).
func (s *State) applyMove(r *Request) (Change, *Refusal) {
	switch {
	case !s.Holds(r.From) || s.kind.Shared():
		return Change{}, errConflict
	case r.ServiceKey == 0:
		return Change{}, invalidList(8, -1)
	case r.To == r.From:
		return Change{}, invalidList(24, -1)
	}
	c := Change{Next: s.next()}
	c.Next.generation++
	c.Next.persist = r.Persist
	if r.Unregister {
		c.Next.remove(func(reg Registration) bool { return reg.Nexus == r.From })
	}
	if !c.Next.register(r.To, r.ServiceKey, r.Holder) {
		return Change{}, &Refusal{Reason: TooMany}
	}
	c.Next.reserve(r.To, s.kind)
	return c, nil
}
