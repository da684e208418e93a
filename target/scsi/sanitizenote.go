package scsi

// SanitizeNote is what is to be known of a sanitize operation after a restart, from
// before it changes anything until it has succeeded or its failure was given up: a
// medium that was overwritten in part must not be taken for one that is sanitized.
type SanitizeNote struct {
	Exit bool `json:"exit"` // EXIT FAILURE MODE is allowed (AUSE)
}

func (z *sanitizing) note() *SanitizeNote {
	if z == nil {
		return nil
	}
	return &SanitizeNote{Exit: z.exit}
}

// interrupted is the operation of a note: one that has failed.
func interrupted(n *SanitizeNote) *sanitizing {
	if n == nil {
		return nil
	}
	z := &sanitizing{exit: n.Exit}
	z.failed.Store(true)
	return z
}

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
