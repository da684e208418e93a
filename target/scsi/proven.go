package scsi

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
