package scsi

// noteSanitizing makes a note stable, nil: that there is none, unless current is not
// the unit's operation any more. Then follows on the command's thread, also if the
// command was aborted meanwhile.
func (c *Command) noteSanitizing(current *sanitizing, n *SanitizeNote, then func(*Command, error)) {
	lu := c.Nexus.LU
	if lu.config.SaveSanitizing == nil {
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
		return nil
	}
	err := lu.config.SaveSanitizing(n)
	if err != nil {
		lu.config.Logger.Error("the state of a sanitize operation cannot be saved", "volume", lu.Name(), "err", err)
	}
	return err
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
