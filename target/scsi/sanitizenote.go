package scsi

// noteSanitizing makes a note stable, nil: that there is none, unless current is not
// the unit's operation any more. Then follows on the command's thread, also if the
// command was aborted meanwhile.
func (c *Command) noteSanitizing(current *sanitizing, n *SanitizeNote, then func(*Command, error)) {
	lu := c.Nexus.LU
	if lu.config.SaveSanitizing == nil && lu.config.SaveHeritage == nil {
		then(c, nil)
		return
	}
	c.running++
	lu.registrar.do(func() {
		err := lu.saveSanitizing(current, n)
		c.Port.Wake(c, &sanitizeNoted{c, err, then})
	})
}

// saveSanitizing is the registrar's part.
func (lu *LogicalUnit) saveSanitizing(current *sanitizing, n *SanitizeNote) error {
	if lu.state.Load().Sanitize != current {
		if lu.config.SaveHeritage != nil {
			return ErrElsewhere
		}
		return nil
	}
	return lu.lasting(func() error { return lu.config.SaveSanitizing(n) }, func(h *Heritage) { h.Sanitizing = n }, func() {
		if n == nil { // what is saved next must not have it again
			lu.endSanitizing(current, nil)
		}
	})
}

// endSanitizing has another operation take the place of one, unless that has been replaced
// already. The caller holds mu.
func (lu *LogicalUnit) endSanitizing(z, by *sanitizing) {
	if s := *lu.state.Load(); s.Sanitize == z {
		s.Sanitize = by
		lu.state.Store(&s)
	}
}

// unsanitized says how a command ends of whose operation the note could not be made.
func (lu *LogicalUnit) unsanitized(err error) outcome {
	return lu.unsaved("the state of a sanitize operation cannot be saved", err)
}

// sanitizeNoted goes on with the command.
type sanitizeNoted struct {
	*Command
	err  error
	then func(*Command, error)
}

// Run implements Task.
func (s *sanitizeNoted) Run() {
	s.running--
	s.then(s.Command, s.err)
}
